# Extension modules, a child, a pipe and a regular expression: run by suite `system`.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use List::Util qw(sum);
use POSIX qw(floor);
use Socket;
use Storable qw(freeze thaw);

print sum(1 .. 10), " ", floor(3.7), " ", inet_ntoa(inet_aton("127.0.0.1")), "\n";
print thaw(freeze([sha256_hex("rtld")]))->[0], "\n";
my $child = fork();
exit 7 if $child == 0;
waitpid($child, 0);
print "child ", $? >> 8, ", pipe ", `echo through`;
