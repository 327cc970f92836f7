/// The two queues that each client has (protocol section 3).
package enum UserQueue: Hashable, Sendable { case replies, events }
