#include "CCommit.h"

const char *ccommit(void) { return CONCLAVE_COMMIT; }
