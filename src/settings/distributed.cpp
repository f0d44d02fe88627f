#include "settings/distributed.h"

#include <fmt/format.h>

#include <algorithm>

#include "settings/named_profile.h"
#include "settings/wrong.h"

namespace plimsoll::settings {

bool names_rank(const DistributedSettings& distributed) {
  return distributed.rank.has_value() || !distributed.address.empty();
}

int64_t updating_ranks(const DistributedSettings& distributed) {
  const bool has_all = distributed.mode == RankMode::kAuto || distributed.mode == RankMode::kDdp;
  return has_all ? 1 : distributed.num_ranks();
}

bool uses_nccl(const RunConfig& config) {
  const DistributedSettings& d = config.distributed;
  if (d.num_ranks() == 1 || !is_for_card(config)) return false;
  const bool may_choose = d.transport == "auto" && config.runtime.device.find(':') == std::string::npos;
  return d.transport == "nccl" || may_choose;
}

/// From the buffers that its documents and users name, with at most eight blocks an exchange
/// (backends/cuda/nccl.h). Of a rank's peers seven are taken to be on its machine.
int64_t nccl_bytes(const RunConfig& config) {
  constexpr int64_t kOwn = int64_t{384} << 20, kNeighbour = int64_t{40} << 20, kFar = int64_t{4} << 20;
  if (!uses_nccl(config)) return 0;
  const int64_t others = config.distributed.num_ranks() - 1, near = std::min<int64_t>(others, 7);
  return kOwn + near * kNeighbour + (others - near) * kFar;
}

std::vector<std::string> rank_notes(const RunConfig& config) {
  const int64_t bytes = nccl_bytes(config);
  if (bytes == 0) return {};
  return {
      fmt::format("the context of each card includes {} for NCCL, an estimate{}", to_string(Bytes(bytes)),
                  config.distributed.transport == "auto" ? "; distributed.transport=shm takes none" : "")};
}

bool shares_gradients(const DistributedSettings& distributed) {
  const bool is_zero2 = distributed.mode == RankMode::kZero2 || distributed.mode == RankMode::kZero3;
  return is_zero2 && distributed.num_ranks() > 1;
}

bool shares_parameters(const DistributedSettings& distributed) {
  return distributed.mode == RankMode::kZero3 && distributed.num_ranks() > 1;
}

std::vector<Error> check_distributed(const RunConfig& config) {
  std::vector<Error> errors;
  const DistributedSettings& d = config.distributed;
  const auto refuse = [&](std::string what, std::string hint) {
    errors.push_back(wrong_setting(std::move(what), std::move(hint)));
  };
  if (d.rank && *d.rank >= d.num_ranks())
    refuse(fmt::format("distributed.rank is {}, of {} ranks from 0 on", *d.rank, d.num_ranks()),
           "set distributed.ranks to their number");
  if (d.num_ranks() == 1) return errors;
  const std::string several = fmt::format("distributed.ranks is {}, and ", d.num_ranks());
  if (d.transport == "nccl" && !is_for_card(config))
    refuse(several + "distributed.transport is nccl, which moves memory of cards, and runtime.device is " +
               config.runtime.device,
           "set distributed.transport=auto, or runtime.device=cuda");
  if (config.training.chooses_global_batch_size)
    refuse(several + "training.global_batch_size is auto", "set training.global_batch_size to a number");
  if (config.training.state.accumulators != StateWord::kFp32 && shares_gradients(d))
    refuse(fmt::format(
               "distributed.mode is {}, and training.state.accumulators is bf16: each rank has its piece "
               "of the accumulators alone, in fp32",
               word(d.mode)),
           "set distributed.mode=zero1, or training.state.accumulators=fp32");
  if (!config.debug.dump_dir.empty())
    refuse(several + "debug.dump_dir asks for dumps, which are one rank's", "dump a run of one rank");
  if (d.topology.per_node.value_or(d.num_ranks()) < d.num_ranks() && d.topology.inter.bytes_per_second == 0)
    refuse(fmt::format("distributed.topology.per_node is {}, of {} ranks, and nothing says how fast the "
                       "machines are connected",
                       *d.topology.per_node, d.num_ranks()),
           "set distributed.topology.inter, for example to 12.5GB/s");
  return errors;
}

}  // namespace plimsoll::settings
