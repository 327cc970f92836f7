/// The output of a state machine: messages for the other one, and effects.
package struct MachineOutput<Message> {
  package var messages: [Message] = []
  package var effects: [Effect] = []

  package init() {}

  package mutating func move(to messages: inout [Message], _ effects: inout [Effect]) {
    if !self.messages.isEmpty {
      messages += self.messages
      self.messages.removeAll(keepingCapacity: true)
    }
    if !self.effects.isEmpty {
      effects += self.effects
      self.effects.removeAll(keepingCapacity: true)
    }
  }
}
