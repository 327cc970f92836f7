/// Who decides which path is used (RFC 8445 section 2.2): an ICE-lite server is always controlled, so its clients are controlling.
package enum ICERole: Sendable { case controlling, controlled }
