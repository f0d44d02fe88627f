// The report of `plan --explain precision`: ops as the autocast pass has
// chosen, conversions that are ops of their own, and where weights live (weights_of).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/model.h"
#include "optimizers/optimizer.h"
#include "passes/session_plan.h"
#include "passes/training/autocast.h"

namespace plimsoll::planner {

/// An op that only converts: one pass over memory.
struct CastUse {
  std::string program;    ///< "step", "micro_first", "update"
  std::string op, layer;  ///< what makes the tensor; of a state its name as the op, and the cast's layer
  std::vector<int64_t> shape;
  std::string from, to;
  std::vector<std::string> readers = {};  ///< names of the ops that share it, each once
  int64_t uses = 0;                       ///< how many they are
  bool recomputed = false;                ///< once more, in backward
  std::string why = {};                   ///< why neither what makes it nor what reads it converts
  int32_t block = ir::kNoBlock;           ///< of the cast
};

/// How one parameter is kept; empty: there is none.
struct WeightStorage {
  std::string name;
  std::string stored, master, gradient, moments;
  std::string rounding = {};            ///< of an update kept in 16 bits alone: "stochastic", "nearest"
  std::set<std::string> products = {};  ///< precisions of the products that multiply with it
  int32_t block = ir::kNoBlock;
};

struct PrecisionReport {
  std::vector<passes::PrecisionChoice> ops = {};  ///< of the first program's forward pass; none: all is f32
  std::vector<CastUse> casts = {};                ///< of the first program and the update
  std::vector<passes::Fp8Product> fp8 = {};       ///< products marked for FP8, of the first program
};

/// The casts of a program whose passes have run, in its order.
std::vector<CastUse> casts_of(const ir::Graph& graph);

/// By parameter: the precisions of the products of which it is one of the two operands. Biases are in none.
std::map<std::string, std::set<std::string>, std::less<>> precisions_of_products(
    const passes::SessionPlan& session);

/// `accumulates`: gradients have accumulators, which are f32.
std::vector<WeightStorage> weights_of(const models::Model& model, const passes::SessionPlan& session,
                                      const optimizers::StateDtypes& state, bool accumulates);

}  // namespace plimsoll::planner
