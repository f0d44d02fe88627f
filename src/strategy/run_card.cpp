#include "strategy/run_card.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.h"
#include "devices/devices.h"
#include "planner/cost/known_profiles.h"
#include "settings/distributed.h"
#include "settings/named_profile.h"

namespace plimsoll::strategy {
namespace {

/// The card that runtime.device names. Where it names none each rank of a machine takes the next one; a
/// launcher that shows each rank a single card has given it that.
int ordinal_of(const std::string& device) {
  if (const size_t colon = device.find(':'); colon != std::string::npos)
    return number_of<int>(device.substr(colon + 1)).value_or(-1);
  return devices::local_rank() > 0 && devices::num_cuda_cards() > 1 ? devices::local_rank() : 0;
}

/// As planned without the card, but never more than its driver has.
RunCard card_here(const devices::CudaCard& here, int ordinal) {
  RunCard card{.name = here.name, .ordinal = ordinal, .capability = here.capability};
  card.profile = planner::card_called(here.name, here.memory.count);
  const int64_t bytes =
      card.profile ? std::min(card.profile->memory_bytes, here.memory.count) : here.memory.count;
  card.context_bytes = planner::kCardContextBytes;
  card.bytes = std::max<int64_t>(0, bytes - card.context_bytes);
  return card;
}

/// Without what is left for exchanges between ranks.
std::optional<RunCard> any_card(const settings::RunConfig& config) {
  if (!settings::is_for_card(config)) return std::nullopt;
  const int ordinal = ordinal_of(config.runtime.device);
  if (auto profile = settings::planned_card(config)) {
    RunCard card{.name = profile->name,
                 .ordinal = ordinal,
                 .capability = planner::cuda_capability(*profile),
                 .bytes = profile->memory_bytes - profile->context_bytes,
                 .context_bytes = profile->context_bytes};
    card.profile = std::move(*profile);
    return card;
  }
  if (const auto here = devices::cuda_card(ordinal)) return card_here(*here, ordinal);
  return RunCard{.ordinal = ordinal};
}

Status check_card_of_rank(const std::string& device) {
  const int rank = devices::local_rank(), cards = devices::num_cuda_cards();
  if (device != "cuda" || cards <= 1 || rank < cards) return Ok{};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("this machine has {} cards, and more ranks than that: there is none for rank {} of "
                  "them",
                  cards, rank),
      "runtime.device", "start one rank for each card, or name a card that ranks share: cuda:0"};
}

}  // namespace

std::optional<RunCard> run_card(const settings::RunConfig& config) {
  std::optional<RunCard> card = any_card(config);
  const int64_t nccl = settings::nccl_bytes(config);
  if (!card || nccl == 0) return card;
  card->context_bytes += nccl;
  card->bytes = std::max<int64_t>(0, card->bytes - nccl);
  return card;
}

Status check_card_is_known(const settings::RunConfig& config) {
  PLIMSOLL_TRY(check_card_of_rank(config.runtime.device));
  const auto card = run_card(config);
  if (!card || card->bytes > 0 || config.memory.device_budget.kind == settings::MemoryBudget::Kind::kBytes)
    return Ok{};
  return Error{
      ErrorCode::kInvalidArgument, "no CUDA card is in this machine, and none is named to plan for",
      "runtime.device",
      "run it on a machine with a card; or name a card's profile, such as runtime.profile=rtx4090; or "
      "give memory.device_budget, such as 22GiB"};
}

Status check_card_is_here(const settings::RunConfig& config) {
  if (!settings::is_for_card(config)) return Ok{};
  const auto planned = settings::planned_card(config);
  const auto here = devices::cuda_card(ordinal_of(config.runtime.device));
  if (!here && config.runtime.device.starts_with("cuda")) return here.error();
  if (!here)
    return Error{ErrorCode::kInvalidArgument,
                 "no such card is in this machine: the profile of a card is for plans only",
                 "runtime.profile",
                 "set runtime.profile=auto to run on this machine, or use 'plimsoll plan'"};
  if (!planned) return Ok{};
  const auto known = planner::card_called(here->name, here->memory.count);
  if (known && known->name == planned->name) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               "runtime.profile is " + planned->name + ", and the card in this machine is " + here->name,
               "runtime.profile", "set runtime.profile=auto and runtime.device=cuda to run on that card"};
}

}  // namespace plimsoll::strategy
