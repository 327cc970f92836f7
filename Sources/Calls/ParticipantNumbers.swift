import MediaModel

/// Who had which participant number in a call. Of very many the first are forgotten.
struct ParticipantNumbers {
  private var devices: [ParticipantNumber: Device]

  init(_ devices: [ParticipantNumber: Device] = [:]) { self.devices = devices }

  mutating func add(_ number: ParticipantNumber, _ device: Device) {
    devices[number] = device
    if number > StoredNumber.capacity { devices[number - StoredNumber.capacity] = nil }
  }

  subscript(number: ParticipantNumber) -> Device? { devices[number] }
}
