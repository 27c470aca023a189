"""Which cache lines the threads of any program share: what the sampler of lab/interposer/sharing saw, judged and told."""
