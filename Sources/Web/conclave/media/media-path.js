// Between a call and its transport: what carries media from this device to the others and back. `ServerPath` goes by the server.

/**
 * The events of a path: `change` (another picture, or none), `speaking`, `connection`, `failures` (frames of somebody did not open for some seconds) with
 * `{count}`, `refused-track` (the server assigned a track that is not this device's: nothing is sent on it), and `lost`: only a new join helps.
 */
export const PATH_EVENTS = ['change', 'connection', 'speaking', 'failures', 'refused-track', 'lost'];

/**
 * The path of one stay. It seals and opens frames by the stay's worker, which is not its own.
 *
 * @typedef {object} Path
 * @property {string} connection As an `RTCPeerConnection` names its `connectionState`.
 * @property {number | undefined} firstFrameMs How long after the opening the first frame of another arrived; undefined until then.
 *
 * Sending. A source is `microphone`, `camera`, `screen` or `screen-audio`. A change counts with the next negotiation.
 * @property {(source: string, track: MediaStreamTrack | null, options?: { replace?: boolean }) => Promise<void>} send Sends `track` as `source`, in place of what
 * was sent as it before; with `replace` another's screen makes room.
 * @property {(source: string) => Promise<void>} pause Sends nothing as `source` for now; the track remains (a muted camera).
 * @property {(source: string) => Promise<void>} remove The track of `source` ends.
 * @property {(source: string) => boolean} isSending Whether `source` is sent, or will be.
 * @property {(source: string) => string | undefined} trackID The id `participant.n` of a source that is sent now.
 * @property {(told: { track: string, layers: any[] }) => void} wantLayers `media.wanted`: the layers of an own track that somebody gets. Throws `Refusal`, and
 * changes nothing, for a track or layers that are not sent.
 *
 * Receiving.
 * @property {(counts: { audio: number, video: number }) => boolean} want There have to be this many slots. Returns whether that needs a negotiation now.
 * @property {(tracks: { kind: string }[]) => boolean} wantFor Likewise for these tracks of others.
 * @property {(map: { rev: number, receive: any[], unsupported: string[] | undefined }) => void} showSlots `media.slots`: which track each slot shows. A lower `rev` is late.
 * @property {MediaStreamTrack[]} audioTracks Audio of all slots, for the page to play.
 * @property {(participant: number, n: number) => MediaStreamTrack | undefined} videoOf The video that recently opened as track `n` of `participant`, if any.
 * @property {(participant: number, n: number) => string} pictureOf The state of that picture: `shown`; `lower`, shown with a lower resolution or frame rate than
 * possible, for lack of bandwidth; `paused` for lack of bandwidth; `awaited`, frames arrive in its slot, but none has opened recently; `unsent`, no slot shows it
 * or nothing arrives in its slot; `unsupported`, this browser cannot decode it.
 * @property {Set<number>} speaking The participants whose opened audio is loud now. 0 represents this device.
 *
 * The path itself.
 * @property {() => Promise<void>} negotiate Makes the path carry what is sent and wanted now. Rejects with the server's error, and is repeated by `resume`.
 * @property {(options?: { isStale?: boolean }) => void} resume The connection to the server is back: repeats what was not answered, and with `isStale` negotiates in
 * any case.
 * @property {() => void} networkChanged The network is reported to have changed.
 * @property {() => Promise<any[]>} statistics The browser's measurements: all reports of its connections.
 * @property {() => void} close
 *
 * @typedef {EventTarget & Path} MediaPath
 */
