<?php
// PHP's stomp extension (1.0): topic, queue with ack, transaction, receipts.
[, $port, $user, $token] = $argv;
function check($found, $wanted) {
    if ($found !== $wanted) { fwrite(STDERR, var_export($found, true) . " instead of " . var_export($wanted, true) . "\n"); exit(1); }
}
$one = new Stomp("tcp://127.0.0.1:$port", $user, $token);
$one->setReadTimeout(5);
check($one->subscribe("/topic/php", ["id" => "t", "ack" => "auto"]), true);
check($one->begin("tx", ["receipt" => "b"]), true);
check($one->send("/topic/php", "in a transaction", ["transaction" => "tx", "receipt" => "s"]), true);
check($one->commit("tx"), true);
check($one->readFrame()->body, "in a transaction");
check($one->subscribe("/queue/php", ["id" => "q", "ack" => "client"]), true);
check($one->send("/queue/php", "job"), true);
$job = $one->readFrame();
check($job->body, "job");
check($one->ack($job, ["receipt" => "a"]), true);
check($one->unsubscribe("/topic/php", ["id" => "t"]), true);
echo "ok\n";
