#ifndef CONCLAVE_CALLOCATIONS_H
#define CONCLAVE_CALLOCATIONS_H

#include <stdbool.h>

// How often this thread has asked for memory, in any library of the process.
unsigned long allocations_of_this_thread(void);

// False under a sanitizer, which brings its own allocator; the number above is then always 0.
bool allocations_are_counted(void);

#endif
