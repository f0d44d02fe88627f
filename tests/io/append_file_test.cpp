#include "io/append_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/line_reader.h"

namespace plimsoll::io {
namespace {

std::string temporary(const char* name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove(path);
  return path;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// As a full disk: files may not grow beyond so many bytes.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    old_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit now = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, old_);
  }

 private:
  rlimit before_ = {};
  void (*old_)(int) = nullptr;
};

TEST(AppendFile, GoesOnBehindWhatIsThere) {
  const std::string path = temporary("append");
  for (const char* record : {"one\n", "two\n"}) {
    auto file = AppendFile::open(path);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->add(record));
  }
  EXPECT_EQ(content(path), "one\ntwo\n");
  EXPECT_FALSE(AppendFile::open(testing::TempDir()));
}

TEST(AppendFile, AFullDiskTearsNothingAndIsToldOnce) {
  const std::string path = temporary("full");
  auto file = AppendFile::open(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->add("12345\n"));
  {
    const SizeLimit limit(8);
    EXPECT_FALSE(file->add("6789\n"));
    EXPECT_EQ(content(path), "12345\n");
    EXPECT_TRUE(file->add("more\n"));
    EXPECT_EQ(content(path), "12345\n");
  }
  EXPECT_TRUE(file->add("last\n"));
  EXPECT_EQ(content(path), "12345\n6789\nmore\nlast\n");
}

TEST(LineReader, GivesLinesAndSaysWhichIsTorn) {
  const std::string path = temporary("lines"), long_line(200'000, 'x'), too_long(3 << 20, 'y');
  std::ofstream(path) << "a\n\n" << long_line << "\n" << too_long << "\nb\ntorn";
  auto reader = LineReader::open(path);
  ASSERT_TRUE(reader);
  const auto next = [&] {
    auto line = reader->next();
    EXPECT_TRUE(line);
    return *line;
  };
  const auto first = next();
  EXPECT_EQ(first->text, "a");
  EXPECT_EQ(next()->text, "");
  const auto third = next();
  EXPECT_EQ(third->text, long_line);
  EXPECT_EQ(third->begin, 3);
  const auto behind = next();
  EXPECT_EQ(behind->text, "b");
  EXPECT_TRUE(behind->whole);
  const auto last = next();
  EXPECT_EQ(last->text, "torn");
  EXPECT_FALSE(last->whole);
  EXPECT_EQ(last->begin, static_cast<int64_t>(std::filesystem::file_size(path)) - 4);
  EXPECT_FALSE(next());
}

}  // namespace
}  // namespace plimsoll::io
