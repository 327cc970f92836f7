/// A worker among those of all servers.
package struct WorkerAddress: Hashable, Sendable, BitwiseCopyable {
  package var node: Incarnation
  /// Each server numbers its workers from 0.
  package var worker: Int

  package init(node: Incarnation, worker: Int) {
    self.node = node
    self.worker = worker
  }
}
