# Hashes of strings that grow, sorting, substitution, a fork and two interpreter threads, each with a copy of everything.
use strict;
use warnings;
use threads;

my $steps = shift;
my %h;
for my $n (1 .. $steps) {
    my $key = $n * 7919 % 5000;
    $h{$key} = "" if length($h{$key} // "") > 20000;
    $h{$key} .= "y$n" x ($n % 9);
    delete $h{$n * 31 % 5000} if $n % 17 == 0;
}

sub sum {
    my ($modulus) = @_;
    my $sum = 0;
    for my $key (sort { length($h{$a}) <=> length($h{$b}) || $a <=> $b } keys %h) {
        (my $text = $h{$key}) =~ s/y(\d+)/<$1>/g;
        $sum = ($sum * 31 + unpack("%32C*", $text) + length $text) % $modulus;
    }
    return $sum;
}

my @threads = map { my $m = $_; threads->create(sub { sum($m) }) } 1000003, 999983;
print join(" ", sum(65521), map { $_->join } @threads), "\n";
$| = 1;
if (my $child = fork) {
    waitpid $child, 0;
    print "child ended with $?\n";
} else {
    %h = map { $_ => "z" x $_ } 1 .. 500;
    print sum(1000003), "\n";
    exit 0;
}
