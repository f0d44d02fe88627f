#include "library/first_values.h"

#include <algorithm>
#include <vector>

#include "library/parameter_values.h"
#include "ops/elementwise.h"
#include "ops/philox.h"
#include "training/initialise.h"

namespace plimsoll::library {
namespace {

/// Elements at once, a multiple of a block of four draws.
constexpr int64_t kPiece = 1 << 16;

/// Uniform in [-bound, bound): the words of dropout's streams, by the key of the name.
Status draw_uniform(const TracedParameter& p, int64_t seed, runtime::Session& session) {
  const auto bits = static_cast<uint64_t>(seed);
  const ops::RandomStream stream{.seed_low = static_cast<uint32_t>(bits),
                                 .seed_high = static_cast<uint32_t>(bits >> 32),
                                 .op_key = static_cast<uint32_t>(ops::random_key(p.name, "init"))};
  const int64_t count = p.shape.num_elements();
  std::vector<float> values(static_cast<size_t>(std::min(count, kPiece)));
  for (int64_t first = 0; first < count; first += kPiece) {
    const int64_t size = std::min(kPiece, count - first);
    for (int64_t i = 0; i < size; i += 4) {
      const auto words = ops::random_words(stream, static_cast<uint64_t>((first + i) / 4));
      for (int64_t j = i; j < std::min(size, i + 4); ++j)
        values[static_cast<size_t>(j)] = static_cast<float>(
            p.options.number * (2.0 * ops::uniform(words[static_cast<size_t>(j - i)]) - 1.0));
    }
    PLIMSOLL_TRY(write_stored(session, p.name, first, std::span(values).first(static_cast<size_t>(size))));
  }
  return Ok{};
}

Status fill(const TracedParameter& p, runtime::Session& session) {
  const int64_t count = p.shape.num_elements();
  const std::vector<float> values(static_cast<size_t>(std::min(count, kPiece)),
                                  static_cast<float>(p.options.number));
  for (int64_t first = 0; first < count; first += kPiece)
    PLIMSOLL_TRY(write_stored(session, p.name, first,
                              std::span(values).first(static_cast<size_t>(std::min(kPiece, count - first)))));
  return Ok{};
}

}  // namespace

Status write_first_values(const Trace& trace, int64_t seed, runtime::Session& session) {
  PLIMSOLL_TRY(training::write_random_state(session, seed, /*step=*/0));
  PLIMSOLL_TRY(session.run(session.plan().find_program({passes::ProgramRole::kInit})));
  for (const TracedParameter& p : trace.parameters()) {
    if (p.options.init == FirstValue::kUniform) PLIMSOLL_TRY(draw_uniform(p, seed, session));
    if (p.options.init == FirstValue::kConstant) PLIMSOLL_TRY(fill(p, session));
  }
  for (const TracedBuffer& buffer : trace.buffers()) {
    const int64_t none = 0;
    if (buffer.options.is_count) PLIMSOLL_TRY(session.write(buffer.name, std::as_bytes(std::span(&none, 1))));
  }
  for (const TracedConstant& constant : trace.constants())
    if (session.plan().find_state(constant.name) != nullptr)
      PLIMSOLL_TRY(session.write(constant.name, constant.data));
  return session.synchronize();
}

}  // namespace plimsoll::library
