/// STOMP's `ack` header of a subscription.
package enum AckMode: Hashable, Sendable { case auto, client, individual }
