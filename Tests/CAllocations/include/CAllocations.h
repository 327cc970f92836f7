#ifndef CONCLAVE_CALLOCATIONS_H
#define CONCLAVE_CALLOCATIONS_H

#include <stdbool.h>

// The number of allocations by this thread, in all libraries of the process.
unsigned long allocations_of_this_thread(void);

// False under a sanitizer, which has its own allocator; the number above is then always 0.
bool allocations_are_counted(void);

#endif
