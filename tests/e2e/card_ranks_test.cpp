// Several ranks that train on cards: what they exchange goes through their hosts' memory, or through NCCL.
// Cards and NCCL are the fake ones of backends/cuda/fake, a process each.
#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "e2e/ranks.h"
#include "e2e/tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kFakeCard = "PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD " ";

class CardRanks : public Ranks {
 protected:
  /// The weights of a run on cards, and in `out_` what it said.
  std::string left(int ranks, const std::string& more = "", const std::string& environment = "") {
    std::filesystem::remove_all(folder_.path("run"));
    const std::string model =
        trained(ranks, "run", kTwoSteps + "runtime.device=cuda " + more, kFakeCard + environment);
    EXPECT_FALSE(model.empty()) << more;
    return model;
  }

  const std::string kTwoSteps =
      "training.max_steps=2 training.eval_strategy=no training.max_grad_norm=0.1 data.sequence_length=24 ";
};

TEST_F(CardRanks, TrainAsOneRankDoes) {
  left(1);
  const std::vector<double> alone = losses();
  ASSERT_EQ(alone.size(), 2U);
  for (const int ranks : {2, 3}) {
    left(ranks);
    const std::vector<double> together = losses();
    ASSERT_EQ(together.size(), alone.size()) << ranks;
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(together[i], alone[i], 1e-5 * std::fabs(alone[i])) << ranks << " ranks, step " << i + 1;
    EXPECT_EQ(number(out_, "measured_peak_bytes"), number(out_, "planned_peak_bytes")) << ranks;
  }
}

TEST_F(CardRanks, BitsDependOnTheirNumberAlone) {
  for (const int ranks : {2, 3}) {
    const std::string model = left(ranks), events = events_of(out_);
    const std::vector<std::array<const char*, 3>> ways = {
        {"another order of the card's work", "", "PLIMSOLL_FAKE_CUDA_SEED=9"},
        {"through slots", "", "PLIMSOLL_RANKS_STAGED=1"},
        {"ZeRO-1", "distributed.mode=zero1", ""},
        {"ZeRO-2", "distributed.mode=zero2", ""},
        {"NCCL", "distributed.transport=nccl", "PLIMSOLL_FAKE_CUDA_SEED=4"},
        {"NCCL, ZeRO-1", "distributed.transport=nccl distributed.mode=zero1", ""},
        {"ZeRO-3", "distributed.mode=zero3", ""},
        {"NCCL, ZeRO-2", "distributed.transport=nccl distributed.mode=zero2", ""},
        {"NCCL, ZeRO-3", "distributed.transport=nccl distributed.mode=zero3", "PLIMSOLL_FAKE_CUDA_SEED=5"}};
    for (const auto& [how, more, environment] : part_of(ways, 3)) {
      EXPECT_TRUE(left(ranks, more, environment) == model) << ranks << " ranks: " << how;
      EXPECT_EQ(events_of(out_), events) << ranks << " ranks: " << how;
    }
  }
}

/// Owners of matrices, pieces of 8-bit states, random bits of a piece, masters.
TEST_F(CardRanks, GiveTheBitsOfDdpWithEveryKindOfUpdate) {
  // The matrices of this model are small: they have owners from 16,384 elements on.
  for (const char* update : part_of<const char*>(
           {"training.optimizer=muon", "training.optimizer=adafactor training.weight_decay=0",
            "training.optimizer=adamw_8bit", "training.precision=bf16 training.state.moments=bf16",
            "training.precision=bf16 training.state.weights=bf16"},
           2)) {
    const std::string more = std::string("model.config.intermediate_size=300 ") + update;
    const std::string ddp = left(2, more), events = events_of(out_);
    EXPECT_TRUE(left(2, "distributed.mode=zero1 " + more) == ddp) << more;
    EXPECT_EQ(events_of(out_), events) << more;
  }
}

/// Matrices that are cut or have owners, and what is offloaded beside that.
TEST_F(CardRanks, GiveThemWhereParametersAreShared) {
  const std::string large = "model.config.intermediate_size=300 ";
  for (const auto& [what, how] : std::vector<std::array<const char*, 2>>{
           {"training.precision=bf16 training.state.weights=bf16 memory.recompute=full",
            "distributed.transport=nccl"},
           {"training.optimizer=muon",
            "'memory.offload={optimizer: host, parameters: host, gradients: host}'"}}) {
    const std::string ddp = left(2, large + what), events = events_of(out_);
    EXPECT_TRUE(left(2, large + what + " distributed.mode=zero3 " + how) == ddp) << what << how;
    EXPECT_EQ(events_of(out_), events) << what << how;
    EXPECT_EQ(number(out_, "measured_peak_bytes"), number(out_, "planned_peak_bytes")) << what << how;
  }
}

TEST_F(CardRanks, OffloadBesideEachOther) {
  const std::string ddp = left(2);
  for (const char* how : {"'memory.offload={optimizer: host, gradients: host, activations: host}'",
                          "distributed.mode=zero2 'memory.offload={optimizer: host, parameters: host}' "
                          "memory.update_on_host=true",
                          "distributed.mode=zero2 'memory.offload={optimizer: host, activations: host}' "
                          "distributed.transport=nccl"})
    EXPECT_TRUE(left(2, how) == ddp) << how;
}

TEST_F(CardRanks, OwnersSendByNcclToo) {
  const std::string muon =
                        "model.config.intermediate_size=300 training.optimizer=muon distributed.mode=zero1 ",
                    model = left(2, muon);
  EXPECT_TRUE(left(2, muon + "distributed.transport=nccl") == model);
}

/// A card each, and a library that can do it.
TEST_F(CardRanks, TakeNcclWhereItIsOfUse) {
  const auto said = [&](const std::string& environment) {
    const Outcome run = train(2, " training.max_steps=1 data.sequence_length=24 runtime.device=cuda",
                              kFakeCard + environment);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.err;
  };
  EXPECT_THAT(said("PLIMSOLL_FAKE_CARDS=2"), HasSubstr("cards exchange gradients through NCCL 2.28.9"));
  EXPECT_THAT(said(""), Not(HasSubstr("NCCL"))) << "one card for both";
  EXPECT_THAT(said("PLIMSOLL_FAKE_CARDS=2 PLIMSOLL_FAKE_NCCL=old"), Not(HasSubstr("NCCL")));
}

TEST_F(CardRanks, WhatNcclRefusesIsToldByName) {
  const auto refused = [&](const std::string& environment, int code) {
    const Outcome run = train(2, " data.sequence_length=24 runtime.device=cuda distributed.transport=nccl",
                              kFakeCard + environment);
    EXPECT_EQ(run.exit_code, code) << run.err;
    const size_t first = run.err.find("\nerror: ");
    EXPECT_TRUE(first == std::string::npos || run.err.find("\nerror: ", first + 1) == std::string::npos)
        << run.err;
    return run.err;
  };
  EXPECT_THAT(refused("PLIMSOLL_FAKE_NCCL=old", 74), HasSubstr("is NCCL 2.17.5, which is too old"));
  EXPECT_THAT(refused("PLIMSOLL_FAKE_NCCL=refused", 74), HasSubstr("Duplicate GPU detected"));
  EXPECT_THAT(refused("PLIMSOLL_FAKE_NCCL=lost:20", 74), HasSubstr("unhandled system error"));
  const Outcome cpu = folder_.run("plan run.yaml distributed.ranks=2 distributed.transport=nccl");
  EXPECT_EQ(cpu.exit_code, 2);
  EXPECT_THAT(cpu.err, HasSubstr("runtime.device is cpu"));
}

TEST_F(CardRanks, ResumeOnTheCpuAndBack) {
  const std::string run =
      "output.dir=run output.save_steps=2 training.eval_strategy=no data.sequence_length=24 "
      "distributed.mode=zero1 ";
  const std::string card = run + "runtime.device=cuda ";
  ASSERT_EQ(train(2, " training.max_steps=2 " + card, kFakeCard).exit_code, 0);
  const Outcome cpu = train(3, " training.max_steps=4 " + run);
  EXPECT_EQ(cpu.exit_code, 0) << cpu.err;
  const Outcome back = train(3, " training.max_steps=6 " + card, kFakeCard);
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(number(back.out, "run_steps"), 6);
  EXPECT_EQ(number(back.out, "steps"), 2);
}

TEST_F(CardRanks, MoreRanksThanCardsAreRefused) {
  const Outcome run = train(3, " runtime.device=cuda", kFakeCard + "PLIMSOLL_FAKE_CARDS=2");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_THAT(run.err, HasSubstr("this machine has 2 cards, and more ranks than that"));
  EXPECT_THAT(run.err, HasSubstr("cuda:0"));
  left(3, "runtime.device=cuda:1", "PLIMSOLL_FAKE_CARDS=2");
}

/// torchrun on two machines: hosts without MPI, which tell each other what NCCL and a checkpoint need over
/// the connections between ranks.
TEST_F(CardRanks, OfSeveralMachinesNeedNoMpi) {
  if (shell("unshare -n -u -m true").exit_code != 0) GTEST_SKIP() << "no machine within this one can be made";
  const std::string zero1 = "distributed.mode=zero1 ", model = left(2, zero1);
  const std::string program =
      "'" PLIMSOLL_BINARY "' train run.yaml --json output.dir=apart runtime.device=cuda " + kTwoSteps + zero1;
  const Outcome run = shell(on_two_machines(
      folder_,
      "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 " +
          kFakeCard + "\nRANK=1 nsenter -t $second -n -u " + program +
          " >second.txt 2>&1 & other=$!\nRANK=0 " + program +
          "\ncode=$?; wait $other || code=$?; exit $code"));
  ASSERT_EQ(run.exit_code, 0) << run.err << folder_.read("second.txt");
  EXPECT_THAT(run.err, HasSubstr("torchrun started 2 ranks"));
  EXPECT_THAT(run.err, HasSubstr("cards exchange gradients through NCCL"));
  EXPECT_TRUE(folder_.read("apart/final/model.safetensors") == model);
}

using RunningCardRanks = RunningRanks;
TEST_F(RunningCardRanks, ALostRankIsNamedAndAllEnd) {
  for (const char* transport : {"shm", "nccl"}) {
    start(2, kFakeCard,
          std::string("data.sequence_length=24 runtime.device=cuda distributed.transport=") + transport);
    const std::array<pid_t, 2> pids = {rank(0), rank(1)};
    ::kill(pids[1], SIGKILL);
    EXPECT_EQ(wait().first, 74) << transport;
    EXPECT_THAT(folder_.read("err.txt"), HasSubstr("rank 1 (host ")) << transport;
    for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid));
    std::filesystem::remove_all(folder_.path("out"));
  }
}

}  // namespace
}  // namespace plimsoll::e2e
