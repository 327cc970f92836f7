/// The controlling agent chooses the path (RFC 8445 section 2.2). An ICE-lite server is always controlled, so its clients are controlling.
package enum ICERole: Sendable { case controlling, controlled }
