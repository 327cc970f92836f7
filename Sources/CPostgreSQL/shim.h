#ifndef CONCLAVE_CPOSTGRESQL_SHIM_H
#define CONCLAVE_CPOSTGRESQL_SHIM_H

#include <dlfcn.h>
#include <stdlib.h>

#include <postgresql/libpq-fe.h>

// libpq is opened by a server that uses it, and not linked: a server with SQLite runs without it. The compiler checks each type against libpq's header.

#define CPOSTGRESQL_FUNCTIONS(FUNCTION) \
  FUNCTION(backend_pid, PQbackendPID) \
  FUNCTION(clear, PQclear) \
  FUNCTION(column_count, PQnfields) \
  FUNCTION(column_type, PQftype) \
  FUNCTION(command_rows, PQcmdTuples) \
  FUNCTION(connect, PQconnectdbParams) \
  FUNCTION(consume_input, PQconsumeInput) \
  FUNCTION(enter_pipeline_mode, PQenterPipelineMode) \
  FUNCTION(error_field, PQresultErrorField) \
  FUNCTION(error_message, PQerrorMessage) \
  FUNCTION(finish, PQfinish) \
  FUNCTION(flush, PQflush) \
  FUNCTION(free_memory, PQfreemem) \
  FUNCTION(free_options, PQconninfoFree) \
  FUNCTION(get_result, PQgetResult) \
  FUNCTION(is_busy, PQisBusy) \
  FUNCTION(is_null, PQgetisnull) \
  FUNCTION(length, PQgetlength) \
  FUNCTION(parameter, PQparameterStatus) \
  FUNCTION(parse_options, PQconninfoParse) \
  FUNCTION(pipeline_sync, PQpipelineSync) \
  FUNCTION(result_status, PQresultStatus) \
  FUNCTION(row_count, PQntuples) \
  FUNCTION(send_prepare, PQsendPrepare) \
  FUNCTION(send_prepared, PQsendQueryPrepared) \
  FUNCTION(server_version, PQserverVersion) \
  FUNCTION(set_nonblocking, PQsetnonblocking) \
  FUNCTION(set_notice_receiver, PQsetNoticeReceiver) \
  FUNCTION(socket, PQsocket) \
  FUNCTION(status, PQstatus) \
  FUNCTION(uses_tls, PQsslInUse) \
  FUNCTION(value, PQgetvalue)

#define CPOSTGRESQL_TYPE(member, name) typedef __typeof__(&name) cpostgresql_##member;
CPOSTGRESQL_FUNCTIONS(CPOSTGRESQL_TYPE)
#undef CPOSTGRESQL_TYPE

typedef struct {
#define CPOSTGRESQL_MEMBER(member, name) cpostgresql_##member _Nonnull member;
  CPOSTGRESQL_FUNCTIONS(CPOSTGRESQL_MEMBER)
#undef CPOSTGRESQL_MEMBER
} cpostgresql_library;

// NULL if there is no libpq, or one older than 14. It stays for the life of the process.
static inline const cpostgresql_library *_Nullable cpostgresql_open(void) {
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!library) return NULL;
  cpostgresql_library *functions = (cpostgresql_library *)malloc(sizeof(cpostgresql_library));
  if (!functions) return NULL;
#define CPOSTGRESQL_TAKE(member, name) \
  { \
    void *address = dlsym(library, #name); \
    if (!address) { \
      free(functions); \
      return NULL; \
    } \
    functions->member = (cpostgresql_##member)address; \
  }
  CPOSTGRESQL_FUNCTIONS(CPOSTGRESQL_TAKE)
#undef CPOSTGRESQL_TAKE
  return functions;
}

#undef CPOSTGRESQL_FUNCTIONS

// Macros of libpq, as functions.

static inline int cpostgresql_state_field(void) { return PG_DIAG_SQLSTATE; }
static inline int cpostgresql_severity_field(void) { return PG_DIAG_SEVERITY_NONLOCALIZED; }

#endif
