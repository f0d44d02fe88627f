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

/// As a large model has them.
TEST(Fp8Scaling, RecordsMoreThanALaunchTakes) {
  constexpr int64_t kSlots = 600;
  OpRun run{"record_amax", {floats({2, kSlots}, std::vector<float>(2 * kSlots, 5))}, {}};
  std::vector<int64_t> slots;
  std::vector<float> expected(2 * kSlots, 5);
  for (int64_t i = 0; i < kSlots; ++i) {
    slots.push_back(kSlots - 1 - i);
    run.inputs.push_back(scalar(static_cast<float>(i)));
    expected[static_cast<size_t>(slots.back())] = std::max(5.0F, static_cast<float>(i));
  }
  run.attrs.set("slots", slots);
  for_each_backend(run, [&](const std::vector<Tensor>& got, const std::string& where) {
    expect_same_bits(got[0], floats({2, kSlots}, expected), where);
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
  const OpRun longer{
      "next_fp8_scales", {floats({3, 2}, {7, 0, 2, 3, 5, 4}), floats({2}, {1, 1})}, {{"margin", int64_t{0}}}};
  for_each_backend(longer, [](const std::vector<Tensor>& got, const std::string& where) {
    expect_same_bits(got[0], floats({3, 2}, {0, 0, 5, 3, 7, 4}), "a history of three: " + where);
  });
  const OpRun recent{"next_fp8_scales", {history, scales}, {{"margin", int64_t{0}}, {"most_recent", true}}};
  for_each_backend(recent, [](const std::vector<Tensor>& got, const std::string& where) {
    expect_same_bits(got[1], floats({6}, {224, 1, 448, 3, 112, 0}), "most recent: " + where);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
