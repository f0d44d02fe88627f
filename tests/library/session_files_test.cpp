#include "library/session_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/checksum.h"
#include "io/file.h"
#include "io/safetensors_reader.h"
#include "library/c_model.h"

namespace plimsoll::library {
namespace {

namespace fs = std::filesystem;
using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::numbers;

constexpr const char* kSettings = R"({"training": {"optimizer": "adamw", "learning_rate": 0.05}})";

void model(CBuilder& b, int64_t out = 3) {
  const pls_value x = b.input("x", "float32", {6, 5}), y = b.input("y", "float32", {6, out});
  const pls_value w = b.parameter("net.weight", {out, 5}, R"({"init": "uniform", "bound": 0.5})");
  b.loss(b.op("mse", {b.op("dropout", {b.op("linear", {x, w})}, R"({"p": 0.2})"), y}));
}

std::string content(const std::string& path) {
  const auto read = io::read_small_file(path, int64_t{1} << 20);
  EXPECT_TRUE(read);
  return read ? *read : std::string();
}

class SessionFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    batch_.set("x", {6, 5}, numbers(30, 1)).set("y", {6, 3}, numbers(18, 2));
    model(builder_);
    plan_ = std::make_unique<CPlan>(builder_, kSettings);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  CBatch batch_;
  CBuilder builder_;
  std::unique_ptr<CPlan> plan_;
};

TEST_F(SessionFiles, GoOnBitForBit) {
  CSession whole(*plan_, R"({"seed": 4})"), first(*plan_, R"({"seed": 4})"), second(*plan_, R"({"seed": 9})");
  for (int i = 0; i < 6; ++i) whole.step(batch_);
  for (int i = 0; i < 3; ++i) first.step(batch_);
  ASSERT_EQ(first.save(folder_.string(), R"({"epoch": 2})").code, PLS_OK) << first.failed.message;
  ASSERT_EQ(second.load(folder_.string()).code, PLS_OK) << second.failed.message;
  EXPECT_EQ(pls_session_steps(second.get()), 3);
  EXPECT_NE(std::string(pls_session_json(second.get())).find(R"("epoch": 2)"), std::string::npos)
      << pls_session_json(second.get());
  for (int i = 0; i < 3; ++i) second.step(batch_);
  EXPECT_EQ(second.read("net.weight", 15), whole.read("net.weight", 15));
  EXPECT_EQ(pls_session_steps(second.get()), 6);
  ASSERT_EQ(second.save(folder_.string()).code, PLS_OK);  // over its own
  const auto file = io::SafetensorsFile::open((folder_ / "model.safetensors").string());
  ASSERT_TRUE(file);
  EXPECT_NE(file->find("net.weight"), nullptr);
  EXPECT_EQ(file->tensors().size(), 1U);
}

TEST_F(SessionFiles, DamageIsFoundAndChangesNothing) {
  CSession session(*plan_);
  session.step(batch_);
  ASSERT_EQ(session.save(folder_.string()).code, PLS_OK);
  session.step(batch_);
  const std::vector<float> before = session.read("net.weight", 15);
  {
    std::fstream file(folder_ / "optimizer.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x7f');
  }
  EXPECT_EQ(session.load(folder_.string()).code, PLS_BAD_DATA);
  EXPECT_EQ(session.read("net.weight", 15), before);
  EXPECT_EQ(pls_session_steps(session.get()), 2);
  fs::remove(folder_ / "session.json");
  EXPECT_EQ(session.load(folder_.string()).code, PLS_BAD_DATA);
  EXPECT_EQ(session.load((folder_ / "none").string()).code, PLS_IO);
}

/// Files that belong together, with a loss scale that none is.
TEST_F(SessionFiles, AScaleThatIsNoneChangesNothing) {
  CSession session(*plan_);
  ASSERT_EQ(session.save(folder_.string()).code, PLS_OK);
  session.step(batch_);
  const std::vector<float> before = session.read("net.weight", 15);
  const std::string path = (folder_ / "optimizer.safetensors").string();
  const std::string whole = content(path);
  const auto file = io::SafetensorsFile::open(path);
  ASSERT_TRUE(file);
  ASSERT_NE(file->find("loss_scaler"), nullptr);
  std::string changed = whole;
  changed.replace(static_cast<size_t>(file->find("loss_scaler")->offset), 4, 4, '\0');
  std::ofstream(path, std::ios::binary) << changed;
  std::string record = content((folder_ / "session.json").string());
  const std::string sum = io::checksum_text(io::checksum(whole));
  ASSERT_NE(record.find(sum), std::string::npos);
  record.replace(record.find(sum), sum.size(), io::checksum_text(io::checksum(changed)));
  std::ofstream(folder_ / "session.json") << record;
  EXPECT_EQ(session.load(folder_.string()).code, PLS_BAD_DATA);
  EXPECT_NE(session.failed.message.find("loss scale"), std::string::npos) << session.failed.message;
  EXPECT_EQ(session.read("net.weight", 15), before);
  EXPECT_EQ(pls_session_steps(session.get()), 1);
}

TEST_F(SessionFiles, AHostWithoutAStateHasNone) {
  CSession session(*plan_);
  ASSERT_EQ(session.save(folder_.string(), "").code, PLS_OK);
  const auto json = io::parse_json(pls_session_json(session.get()));
  ASSERT_TRUE(json);
  ASSERT_NE(json->find("host"), nullptr);
  EXPECT_TRUE(json->find("host")->is_null());
}

TEST_F(SessionFiles, AnotherModelIsRefusedByName) {
  CSession session(*plan_);
  ASSERT_EQ(session.save(folder_.string()).code, PLS_OK);
  CBuilder b;
  model(b, 4);
  const CPlan plan(b, kSettings);
  CSession other(plan);
  EXPECT_EQ(other.load(folder_.string()).code, PLS_BAD_DATA);
  EXPECT_NE(other.failed.message.find("net.weight"), std::string::npos);
}

TEST_F(SessionFiles, ForeignFoldersAreKept) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "mine.txt") << "text";
  CSession session(*plan_);
  EXPECT_EQ(session.save(folder_.string()).code, PLS_INVALID_ARGUMENT);
  EXPECT_TRUE(fs::exists(folder_ / "mine.txt"));
}

}  // namespace
}  // namespace plimsoll::library
