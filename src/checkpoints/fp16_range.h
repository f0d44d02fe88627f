// Weights that fp16 cannot hold are refused where they are read, by their names: rounded they would be
// infinite, and so would every loss be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "models/model.h"
#include "settings/run_config.h"

namespace plimsoll::runtime {
class Communicator;
class Session;
}  // namespace plimsoll::runtime

namespace plimsoll::checkpoints {

/// The first finite value that becomes infinite in fp16: from 65,520 on, halfway between the greatest,
/// 65,504, and what would be the next.
std::optional<size_t> first_beyond_fp16(std::span<const float> values);

/// The same of bf16 codes.
std::optional<size_t> first_bf16_beyond_fp16(std::span<const uint16_t> values);

/// What fp16 is to a weight: what it is kept in, what it is multiplied in (by training.precision, by an
/// override), what the residual stream that begins with its rows is stored in.
enum class Fp16Use : uint8_t { kWeight, kProducts, kOverride, kResidual };

/// kBadData: `tensor` holds `value`.
Error beyond_fp16(const std::string& tensor, float value, Fp16Use use);

/// Looks through what the session rounds to fp16: masters of its fp16 weights, and weights in f32 or bf16
/// in products of its programs or, rows of a table, in their residual stream. Errors: beyond_fp16, of the
/// first in the model's order, whatever the number of threads; of the communicator. Of parameters that ranks
/// share each looks at what it has: `ranks` are all of them then, which call this at the same time.
Status check_fp16_range(const settings::RunConfig& config, const models::Model& model,
                        const runtime::Session& session, int num_threads,
                        runtime::Communicator* ranks = nullptr);

}  // namespace plimsoll::checkpoints
