import ConclaveClient
import LinuxIO
import MediaModel
import Synchronization

/// One thread that drives the media of many participants.
final class MediaLoop: Sendable {
  enum Command: Sendable {
    case add(PeerSetup)
    /// The peer of this index is gone: it no longer sends or receives.
    case silence(Int)
    /// Receivers want these layers of a track that the peer of this index sends.
    case want(Int, TrackKey, [SimulcastLayer])
    /// The measurement starts or ends.
    case measure(Bool)
    /// Asks for the peers' traffic.
    case report(CheckedContinuation<[PeerTraffic], Never>)
    case stop
  }

  private let commands = Mutex<[Command]>([])
  private let wakeUp: EventFD
  private let published = Mutex<(at: UInt64, tally: Tally)>((0, Tally()))
  private let thread = Mutex<OSThread?>(nil)

  init(number: Int) throws {
    wakeUp = try EventFD()
    let started = try OSThread(name: "media-\(number)") { [self] in
      do {
        let body = try MediaThread(wakeUp: wakeUp)
        body.run(
          takeCommands: {
            commands.withLock { queue in
              defer { queue = [] }
              return queue
            }
          }, publish: { tally, now in published.withLock { $0 = (now.nanoseconds, tally) } })
      } catch {
        fatalError("the media thread cannot run: \(error)")
      }
    }
    thread.withLock { $0 = started }
  }

  func submit(_ command: Command) {
    commands.withLock { $0.append(command) }
    wakeUp.signal()
  }

  /// The counts of the thread's peers, at most a quarter of a second old.
  var tally: Tally { publication.tally }

  /// The counts and the time at which they were taken, in nanoseconds of the monotonic clock.
  var publication: (at: UInt64, tally: Tally) { published.withLock { $0 } }

  func traffic() async -> [PeerTraffic] {
    await withCheckedContinuation { submit(.report($0)) }
  }

  func stop() {
    submit(.stop)
    thread.withLock { $0 }?.join()
  }
}
