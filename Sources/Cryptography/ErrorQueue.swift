import COpenSSL

/// Runs calls into OpenSSL and empties the thread's queue of errors behind them. An error that stayed there would be taken for one of a TLS or DTLS connection
/// that the same thread serves next (SSL_get_error(3)).
func leavingNoErrors<Result>(_ body: () -> Result) -> Result {
  defer { ERR_clear_error() }
  return body()
}
