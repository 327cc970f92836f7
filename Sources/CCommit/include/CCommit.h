#ifndef CONCLAVE_CCOMMIT_H
#define CONCLAVE_CCOMMIT_H

/* The commit that the program was built from, as the environment of the build named it (CONCLAVE_COMMIT); empty if it named none. */
const char *_Nonnull ccommit(void);

#endif
