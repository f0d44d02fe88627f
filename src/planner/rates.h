// Built-in rates from which a plan estimates time until a machine is calibrated.
#pragma once

namespace plimsoll::planner {

/// Seconds of a step: arithmetic and memory traffic, one after the other. The rates are those of one core of
/// a server processor with AVX-512: 100 GFLOP/s sustained in fp32, 600 where products run on AMX
/// (`tiles`); 8 GB/s. Uncalibrated: good to a factor of two.
double estimate_seconds(double flops, double bytes, int num_threads, bool tiles = false);

}  // namespace plimsoll::planner
