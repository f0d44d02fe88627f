// The states of delayed scaling, to the bit those of the reference.
#include <limits>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Fp8Scaling, RecordsTheLargest) {
  const OpRun run{"record_amax",
                  {floats({2, 3}, {1, 2, 3, 4, 5, 6}), scalar(7), scalar(1), scalar(NAN)},
                  {{"slots", std::vector<int64_t>{0, 1, 2}}}};
  for_each_backend(run, [](const std::vector<Tensor>& got, const std::string& where) {
    expect_same_bits(got[0], floats({2, 3}, {7, 2, 3, 4, 5, 6}), "raised: " + where);
  });
}

TEST(Fp8Scaling, MovesOn) {
  const Tensor history = floats({2, 6}, {2, 0, 1, kInfinity, 4, 0, 8, 5, 0, 1, 0, 0}),
               scales = floats({6}, {1, 1, 3, 3, 1, 0});
  const OpRun widest{"next_fp8_scales", {history, scales}, {{"margin", int64_t{1}}, {"hybrid", true}}};
  for_each_backend(widest, [](const std::vector<Tensor>& got, const std::string& where) {
    // Slots 4 and 5 are gradients' (E5M2). An infinity keeps the scale; a step without an amax does not roll.
    expect_same_bits(got[1], floats({6}, {28, 44.8F, 224, 3, 7168, 0}), "scales: " + where);
    expect_same_bits(got[0], floats({2, 6}, {0, 0, 0, 0, 0, 0, 2, 5, 1, kInfinity, 4, 0}),
                     "history: " + where);
  });
  const OpRun recent{"next_fp8_scales", {history, scales}, {{"margin", int64_t{0}}, {"most_recent", true}}};
  for_each_backend(recent, [](const std::vector<Tensor>& got, const std::string& where) {
    expect_same_bits(got[1], floats({6}, {224, 1, 448, 3, 112, 0}), "most recent: " + where);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
