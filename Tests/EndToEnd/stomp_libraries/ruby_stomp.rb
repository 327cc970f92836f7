# ruby-stomp on 1.0, 1.1 and 1.2: topic, queue with ack and nack, transaction, receipt.
require "stomp"

port, user, token = ARGV

def connect(port, user, token, version)
  headers = version == "1.0" ? {} : { "accept-version" => version, "host" => "localhost", "heart-beat" => "5000,5000" }
  Stomp::Connection.new(hosts: [{ login: user, passcode: token, host: "127.0.0.1", port: port.to_i }],
                        connect_headers: headers, reliable: false)
end

def check(found, wanted)
  raise "#{found.inspect} instead of #{wanted.inspect}" unless found == wanted
end

%w[1.0 1.1 1.2].each do |version|
  # A second connection of the device would replace the first, so there is only one.
  one = connect(port, user, token, version)
  check(one.protocol, version)
  one.subscribe("/topic/ruby", { id: "t" })
  one.begin("tx")
  one.publish("/topic/ruby", "in a transaction", { transaction: "tx", mood: "go:od" })
  one.commit("tx")
  message = one.receive
  check(message.body, "in a transaction")
  check(message.headers["mood"], "go:od")
  mode = version == "1.0" ? "client" : "client-individual"
  one.subscribe("/queue/ruby", { id: "q", ack: mode })
  one.publish("/queue/ruby", "job", {})
  job = one.receive
  check(job.body, "job")
  id = version == "1.2" ? job.headers["ack"] : job.headers["message-id"]
  more = version == "1.1" ? { subscription: "q" } : {}
  one.ack(id, more)
  one.unsubscribe("/topic/ruby", { id: "t" })
  one.disconnect({ receipt: "bye" })
  check(one.disconnect_receipt.headers["receipt-id"], "bye")
end
puts "ok"
