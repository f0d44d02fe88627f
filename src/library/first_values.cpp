#include "library/first_values.h"

#include <algorithm>
#include <vector>

#include "numerics/convert.h"
#include "ops/elementwise.h"
#include "ops/philox.h"
#include "optimizers/optimizer.h"
#include "training/initialise.h"

namespace plimsoll::library {
namespace {

/// Elements at once, a multiple of a block of four draws.
constexpr int64_t kPiece = 1 << 16;

numerics::Format format_of(ir::DType dtype) {
  return dtype == ir::DType::kBf16  ? numerics::Format::kBf16
         : dtype == ir::DType::kF16 ? numerics::Format::kFp16
                                    : numerics::Format::kFp32;
}

Status write_state(runtime::Session& session, const std::string& state, int64_t first,
                   std::span<const float> values) {
  const ir::DType dtype = session.type(state).dtype;
  const int64_t bytes = ir::bits(dtype) / 8;
  std::vector<std::byte> codes(values.size() * static_cast<size_t>(bytes));
  numerics::encode(format_of(dtype), values, codes);
  return session.write(state, codes, first * bytes);
}

Status write_piece(runtime::Session& session, const std::string& parameter, int64_t first,
                   std::span<const float> values) {
  const std::string master = optimizers::master_name(parameter);
  if (session.plan().find_state(master) != nullptr) PLIMSOLL_TRY(write_state(session, master, first, values));
  return write_state(session, parameter, first, values);
}

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
    PLIMSOLL_TRY(write_piece(session, p.name, first, std::span(values).first(static_cast<size_t>(size))));
  }
  return Ok{};
}

Status fill(const TracedParameter& p, runtime::Session& session) {
  const int64_t count = p.shape.num_elements();
  const std::vector<float> values(static_cast<size_t>(std::min(count, kPiece)),
                                  static_cast<float>(p.options.number));
  for (int64_t first = 0; first < count; first += kPiece)
    PLIMSOLL_TRY(write_piece(session, p.name, first,
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
  for (const TracedConstant& constant : trace.constants())
    if (session.plan().find_state(constant.name) != nullptr)
      PLIMSOLL_TRY(session.write(constant.name, constant.data));
  return session.synchronize();
}

Status write_values(runtime::Session& session, const std::string& parameter, std::span<const float> values) {
  for (int64_t first = 0; first < std::ssize(values); first += kPiece) {
    const int64_t size = std::min(kPiece, std::ssize(values) - first);
    PLIMSOLL_TRY(write_piece(session, parameter, first,
                             values.subspan(static_cast<size_t>(first), static_cast<size_t>(size))));
  }
  return session.synchronize();
}

Status read_values(const runtime::Session& session, const std::string& parameter, std::span<float> values) {
  const ir::DType dtype = session.type(parameter).dtype;
  if (dtype == ir::DType::kF32) return session.read(parameter, std::as_writable_bytes(values));
  const int64_t bytes = ir::bits(dtype) / 8;
  std::vector<std::byte> codes(static_cast<size_t>(std::min(kPiece, std::ssize(values)) * bytes));
  for (int64_t first = 0; first < std::ssize(values); first += kPiece) {
    const auto size = static_cast<size_t>(std::min(kPiece, std::ssize(values) - first));
    const std::span<std::byte> piece = std::span(codes).first(size * static_cast<size_t>(bytes));
    PLIMSOLL_TRY(session.read(parameter, piece, first * bytes));
    numerics::decode(format_of(dtype), piece, values.subspan(static_cast<size_t>(first), size));
  }
  return Ok{};
}

}  // namespace plimsoll::library
