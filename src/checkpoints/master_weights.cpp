#include "checkpoints/master_weights.h"

#include <algorithm>
#include <span>

#include "numerics/convert.h"
#include "optimizers/optimizer.h"
#include "runtime/session.h"
#include "settings/state_formats.h"

namespace plimsoll::checkpoints {

bool has_master(const models::Parameter& parameter, const runtime::Session& session) {
  return session.plan().has_state(optimizers::master_name(parameter.name));
}

bool shares_master(const models::Parameter& parameter, const runtime::Session& session) {
  return session.plan().find_shared(optimizers::master_name(parameter.name)) != nullptr;
}

bool has_masters(const models::Model& model, const runtime::Session& session) {
  return std::any_of(model.parameters().begin(), model.parameters().end(),
                     [&](const models::Parameter& p) { return has_master(p, session); });
}

Status round_masters(const models::Model& model, runtime::Session& session, int num_threads) {
  if (!has_masters(model, session)) return Ok{};
  runtime::BackgroundReader reader(session);  // the session's own mover writes what this one reads
  PLIMSOLL_TRY(reader.mark());
  for (const models::Parameter& p : model.parameters()) {
    if (!has_master(p, session)) continue;  // a frozen one is what it was read as
    if (shares_master(p, session)) continue;
    const std::string master = optimizers::master_name(p.name);
    const auto round = [&](std::span<std::byte> weights, int64_t first) {
      const auto bytes = static_cast<int64_t>(weights.size());
      return reader.read(
          master, 2 * first, 2 * bytes, [&](std::span<const std::byte> piece, int64_t at) -> Status {
            const std::span values(reinterpret_cast<const float*>(piece.data()), piece.size() / 4);
            numerics::encode(settings::state_format(p.dtype).encoding, values,
                             weights.subspan(static_cast<size_t>(at / 2), piece.size() / 2),
                             {.num_threads = num_threads});
            return Ok{};
          });
    };
    PLIMSOLL_TRY(session.write_pieces(p.name, 0, 2 * p.shape.num_elements(), round));
  }
  return Ok{};
}

}  // namespace plimsoll::checkpoints
