import CallMessages
import Contract
import MediaModel
import NIOPosix
import SDP

/// Reads the SDPs of `media` requests on separate threads, because a large one takes milliseconds.
struct OfferReader: Sendable {
  let threads: NIOThreadPool
  let inbox: CommandInbox

  /// Later commands of the session's user wait until the offer is back in the inbox.
  func read(_ request: MediaRequest, of call: CallID, for session: SessionID, id: String) {
    inbox.hold(session)
    threads.submit { [inbox] _ in
      let offer = NodeCommand.offer(session, id: id, call, Self.offer(in: request.sdp), request.tracks)
      inbox.resume(session, with: offer)
    }
  }

  private static func offer(in sdp: String) -> Result<MediaOffer, RequestError> {
    do throws(SDPError) {
      return .success(try MediaOffer(parsing: sdp))
    } catch {
      return .failure(RequestError(.mediaSDPInvalid, "line \(error.line): \(error.reason)", field: "sdp"))
    }
  }
}
