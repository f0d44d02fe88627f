// What holds for every op of the list; and that the list names every file of the folder.
#include "ops/op_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ops/fused_quantize.h"
#include "ops/tensor_rules.h"

namespace plimsoll::ops {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::filesystem::path kFolder = std::filesystem::path(PLIMSOLL_TEST_DIR).parent_path() / "src" / "ops";

TEST(OpList, IsSortedAndFindsEachOfItsOps) {
  std::set<std::string_view> names;
  std::string_view last;
  for (const ir::OpDef* def : all_ops()) {
    EXPECT_LT(last, def->name);
    last = def->name;
    EXPECT_EQ(find_op(def->name), def);
    names.insert(def->name);
  }
  EXPECT_EQ(find_op(""), nullptr);
  EXPECT_EQ(find_op("linea"), nullptr);
  EXPECT_EQ(find_op("zzz"), nullptr);
}

TEST(OpList, EveryOpIsComplete) {
  for (const ir::OpDef* def : all_ops()) {
    EXPECT_FALSE(def->summary.empty()) << def->name;
    EXPECT_NE(def->infer, nullptr) << def->name;
    EXPECT_NE(def->reference, nullptr) << def->name;
    EXPECT_TRUE(def->max_inputs == -1 || def->max_inputs >= def->min_inputs) << def->name;
    for (const ir::Alias& a : def->consumes)
      EXPECT_TRUE(def->max_inputs == -1 || a.input < def->max_inputs) << def->name;
    for (const ir::Alias& a : def->in_place) EXPECT_LT(a.input, def->max_inputs) << def->name;
    for (const ir::Alias& a : def->accumulators) {
      EXPECT_GE(a.input, def->min_inputs) << def->name;
      EXPECT_LT(a.input, def->max_inputs) << def->name;
    }
  }
}

bool takes(const ir::OpDef& def, std::string_view attr) {
  return std::any_of(def.attrs.begin(), def.attrs.end(), [&](const auto& a) { return a.name == attr; });
}

/// Ops that quantise what another op computes: made behind all passes that ask for properties, with the
/// attributes of both ops.
bool is_fused_quantize(const ir::OpDef& def) {
  return std::ranges::find(fused_quantizes(), def.name, &FusedQuantize::op) != fused_quantizes().end();
}

/// What passes ask of an op agrees with what it takes, and the ops that it names are there.
TEST(OpList, PropertiesAgree) {
  for (const ir::OpDef* def : all_ops()) {
    if (is_fused_quantize(*def)) continue;
    for (const ir::OutputDtype& o : def->output_dtypes) EXPECT_TRUE(takes(*def, o.attr)) << def->name;
    for (const char* attr : {"out", "dw", "dx"})
      EXPECT_EQ(takes(*def, attr), std::any_of(def->output_dtypes.begin(), def->output_dtypes.end(),
                                               [&](const auto& o) { return o.attr == attr; }))
          << def->name << " " << attr;
    if (def->work.kind == ir::WorkKind::kAttention)  // allowed to round: ops/attention.h
      EXPECT_EQ(def->rounded_operands, 0) << def->name;
    else
      EXPECT_EQ(def->rounded_operands > 0, takes(*def, "precision")) << def->name;
    EXPECT_EQ(def->random >= 0, takes(*def, "key")) << def->name;
    for (const std::string_view named : {def->norm.with_add, def->with_add.op, def->multi_tensor})
      EXPECT_TRUE(named.empty() || find_op(named) != nullptr) << def->name << " " << named;
    EXPECT_TRUE(!def->is_view || def->elements == ir::Elements::kSame) << def->name;
  }
}

/// An op without a stated kind would be estimated as one that moves bytes.
TEST(OpList, EveryOpStatesItsWork) {
  std::set<std::string_view> of_many;
  for (const ir::OpDef* def : all_ops()) of_many.insert(def->multi_tensor);
  for (const ir::OpDef* def : all_ops()) {
    using enum ir::WorkKind;
    const ir::Work& work = def->work;
    EXPECT_NE(work.kind, kUnstated) << def->name;
    EXPECT_EQ(work.size == nullptr, work.keys.empty()) << def->name;
    EXPECT_TRUE(work.size == nullptr || work.kind == kProduct || work.kind == kAttention ||
                work.kind == kLossHead)
        << def->name << ": its rates are looked up by other extents than bytes";
    EXPECT_TRUE(work.size != nullptr || (work.kind != kProduct && work.kind != kLossHead)) << def->name;
    EXPECT_EQ(work.kind == kNone, def->is_view || def->state != ir::StateAccess::kNone) << def->name;
    EXPECT_TRUE(!def->is_copy || work.kind == kCopy) << def->name;
    EXPECT_EQ(work.is_multi_tensor, of_many.contains(def->name) || def->name == "chunk_squares") << def->name;
    EXPECT_EQ(work.kind == kUpdate,
              find_update_rule(def->name) != nullptr || find_tensor_rule(def->name) != nullptr)
        << def->name;
    EXPECT_EQ(def->is_view, def->view != nullptr) << def->name;
    EXPECT_TRUE(!def->ends_copy || def->is_view) << def->name;
  }
}

/// The words of calibration files: rates that were measured keep their meaning.
TEST(OpList, KeysOfMeasuredRates) {
  std::set<std::string_view> keys;
  for (const ir::OpDef* def : all_ops()) keys.insert(def->work.keys.begin(), def->work.keys.end());
  EXPECT_EQ(keys,
            (std::set<std::string_view>{"linear", "linear_t", "linear_dw", "attention", "attention_grad",
                                        "head_loss", "conv2d", "conv2d_input_grad", "conv2d_weight_grad"}));
}

/// A fused op's accumulators and dtypes are its parts', one operand further on.
TEST(OpList, AddedFormsTakeOneOperandMore) {
  for (const ir::OpDef* def : all_ops()) {
    if (def->with_add.op.empty()) continue;
    const ir::OpDef& fused = *find_op(def->with_add.op);
    EXPECT_EQ(fused.min_inputs, def->min_inputs + 1) << def->name;
    ASSERT_EQ(fused.accumulators.size(), def->accumulators.size()) << def->name;
    for (size_t i = 0; i < def->accumulators.size(); ++i) {
      EXPECT_EQ(fused.accumulators[i].output, def->accumulators[i].output) << def->name;
      EXPECT_EQ(fused.accumulators[i].input, def->accumulators[i].input + 1) << def->name;
    }
  }
}

/// What a backward or an optimizer op computes is not differentiated again; everything else has its rule.
TEST(OpList, EveryForwardOpHasADerivative) {
  const std::set<std::string_view> constants = {
      "state",       "state_assign",       "fill",      "random_normal",    "rope_table",
      "positions",   "copy_start",         "copy_done", "cache_update",     "attention_cached",
      "linear_few",  "document_positions", "dora_norm", "batch_statistics", "normalize_pixels",
      "kept_samples"};
  const std::set<std::string_view> backward = {
      "linear_dw",  "sum_squares",       "sum_squares_sweep", "global_norm",        "clip_scale",
      "unscale",    "next_scale",        "exchange",          "gather_ranks",       "sum_ranks",
      "all_gather", "quantize_operand",  "scaled_matmul",     "record_amax",        "next_fp8_scales",
      "accumulate", "own_piece",         "put_piece",         "chunk_squares",      "sum_chunk_squares",
      "own_tensor", "put_owned",         "from_owner",        "own_draws",          "own_chunks",
      "unshard",    "conv2d_statistics", "conv2d_batch_norm", "dequantize_operand", "linear_dw_db"};
  for (const ir::OpDef* def : all_ops()) {
    const bool grad = def->name.find("_grad") != std::string_view::npos;
    const bool none = grad || is_fused_quantize(*def) || constants.contains(def->name) ||
                      backward.contains(def->name) || find_update_rule(def->name) != nullptr ||
                      find_tensor_rule(def->name) != nullptr;
    EXPECT_EQ(def->vjp == nullptr, none) << def->name;
  }
}

TEST(OpList, NamesEveryFileThatExportsAGroup) {
  const std::string list = read(kFolder / "op_list.cpp");
  size_t groups = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string stem = entry.path().stem().string();
    if (read(entry.path()).find("OpGroup " + stem + "_ops()") == std::string::npos) continue;
    ++groups;
    EXPECT_NE(list.find(stem + "_ops()"), std::string::npos) << stem;
  }
  EXPECT_GE(groups, 13U);
}

/// The headers promise each op by a wrapper or by name.
TEST(OpList, EveryOpIsDescribedInAHeader) {
  std::string header;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".h") header += read(entry.path());
  for (const ir::OpDef* def : all_ops())
    EXPECT_NE(header.find("`" + std::string(def->name) + "`"), std::string::npos) << def->name;
}

}  // namespace
}  // namespace plimsoll::ops
