# Net::Stomp (1.0 and 1.1): topic, queue with ack and nack, transaction, receipt.
use strict;
use warnings;
use Net::Stomp;

my ($port, $user, $token) = @ARGV;

sub check { my ($found, $wanted) = @_; die "'$found' instead of '$wanted'" unless $found eq $wanted }

for my $version ('1.0', '1.1') {
    my $one = Net::Stomp->new({ hostname => '127.0.0.1', port => $port });
    my $connected = $one->connect({ login => $user, passcode => $token, 'accept-version' => $version, host => 'localhost' });
    check($connected->command, 'CONNECTED');
    check($connected->headers->{version}, $version);
    $one->subscribe({ id => 't', destination => '/topic/perl' });
    $one->send_transactional({ destination => '/topic/perl', body => 'in a transaction' }) or die 'no receipt';
    check($one->receive_frame->body, 'in a transaction');
    $one->subscribe({ id => 'q', destination => '/queue/perl', ack => 'client' });
    $one->send_with_receipt({ destination => '/queue/perl', body => 'job' }) or die 'no receipt';
    my $job = $one->receive_frame;
    check($job->body, 'job');
    $one->ack({ frame => $job, receipt => 'acked' });
    check($one->receive_frame->headers->{'receipt-id'}, 'acked');
    $one->unsubscribe({ id => 't' });
    $one->disconnect;
}
print "ok\n";
