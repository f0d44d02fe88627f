// The DataLoader: its order, its state, its errors, whatever the number of threads.
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <set>
#include <stdexcept>
#include <vector>

namespace pl = plimsoll;

namespace {

int failures = 0;
void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++failures;
}

struct Numbers {
  size_t damaged = 1000;
  size_t size() const { return 22; }
  pl::Row operator[](size_t row) const {
    if (row == damaged) throw std::runtime_error("a damaged row");
    return {{"row", pl::Tensor(static_cast<int32_t>(row))}, {"x", pl::Tensor(std::vector<float>{1, 2, 3})}};
  }
};
struct Ragged {
  size_t size() const { return 8; }
  pl::Row operator[](size_t row) const { return {{"x", pl::Tensor(std::vector<float>(row == 5 ? 2 : 3))}}; }
};

std::vector<int32_t> rows_of(const pl::Batch& batch) {
  const pl::Array& array = *batch.find("row");
  expect(array.shape == pl::Shape{4} && batch.find("x")->shape == (pl::Shape{4, 3}), "rows are stacked");
  const auto* first = static_cast<const int32_t*>(array.data);
  return {first, first + 4};
}

using Order = std::vector<std::vector<int32_t>>;
Order epoch_of(pl::DataLoader& loader) {
  Order order;
  for (const pl::Batch& batch : loader) order.push_back(rows_of(batch));
  return order;
}

void orders() {
  pl::DataLoader alone(Numbers{}, {.batch_size = 4, .shuffle = true, .seed = 7});
  pl::DataLoader threaded(Numbers{},
                          {.batch_size = 4, .shuffle = true, .seed = 7, .workers = 3, .prefetch = 1});
  pl::DataLoader in_order(Numbers{}, {.batch_size = 4});
  const Order first = epoch_of(alone), second = epoch_of(alone);
  expect(first.size() == 5 && alone.size() == 5, "the short last batch is left out");
  std::set<int32_t> distinct;
  for (const auto& rows : first) distinct.insert(rows.begin(), rows.end());
  expect(distinct.size() == 20, "no row comes twice in an epoch");
  expect(first != second, "epochs differ");
  expect(epoch_of(threaded) == first && epoch_of(threaded) == second, "threads change nothing");
  expect(epoch_of(in_order).front() == std::vector<int32_t>({0, 1, 2, 3}), "no shuffle: as they lie");
  int64_t places[4] = {};
  expect(pls_order(7, 1, 22, 4, 4, places, nullptr) == PLS_OK && second[1][2] == places[2],
         "the library's order");
}

void states() {
  const pl::LoaderOptions options = {.batch_size = 4, .shuffle = true, .seed = 7, .workers = 2};
  pl::DataLoader whole(Numbers{}, options);
  Order all;
  for (const pl::Batch& batch : whole.until(12)) all.push_back(rows_of(batch));
  expect(all.size() == 12 && whole.state() == pl::LoaderState{2, 2}, "until goes through epochs");
  pl::DataLoader begun(Numbers{}, options);
  for (const pl::Batch& batch : begun.until(7)) expect(batch.find("row") != nullptr, "a batch");
  pl::LoaderOptions resumed = options;
  resumed.state = pl::LoaderState::of_json(begun.state().json());
  pl::DataLoader rest(Numbers{}, resumed);
  size_t at = 7;
  for (const pl::Batch& batch : rest.until(12))
    expect(rows_of(batch) == all[at++], "it reads on behind its state");
  expect(at == 12, "to the same end");
  pl::DataLoader left(Numbers{}, options);
  for (const pl::Batch& batch : left) {
    expect(rows_of(batch) == all[0], "the first");
    break;
  }
  expect(epoch_of(left).front() == all[5], "a loop that is left: the next one is the next epoch");
}

void errors() {
  for (const int64_t workers : {0, 2}) {
    pl::DataLoader loader(Numbers{.damaged = 9}, {.batch_size = 4, .workers = workers});
    int good = 0;
    try {
      for (const pl::Batch& batch : loader) good += batch.find("row") != nullptr;
      expect(false, "the data set's error comes out");
    } catch (const std::runtime_error& error) {
      expect(good == 2 && std::string(error.what()) == "a damaged row", "behind the good batches");
    }
  }
  try {
    pl::DataLoader loader(Ragged{}, {.batch_size = 4});
    for (const pl::Batch& batch : loader) expect(batch.find("x") != nullptr, "a batch");
    expect(false, "ragged rows are refused");
  } catch (const pl::BadData& error) {
    expect(std::string(error.what()).find("row 5") != std::string::npos, "with the row");
  }
  try {
    const pl::DataLoader loader(Numbers{}, {.batch_size = 100});
    expect(false, "no whole batch");
  } catch (const pl::BadData&) {
  }
}

void json() {
  pl::detail::Json object;
  object.set("a", "q\"\\\n")
      .set("b", 0.1)
      .set("c", true)
      .raw("d", R"({"least_bytes": 3, "x": [1, {"y": "}"}]})")
      .set("e", -7);
  const std::string text = object.text();
  expect(pl::detail::json_value(text, "a") == R"("q\"\\\u000a")", "quotes");
  expect(pl::detail::json_number(pl::detail::json_value(text, "b"), 0.0) == 0.1, "numbers are exact");
  expect(pl::detail::json_number<int64_t>(pl::detail::json_value(text, "e"), 0) == -7,
         "behind a nested object");
  expect(pl::detail::json_value(text, "least_bytes").empty(), "members of the object alone");
  expect(pl::detail::json_value(pl::detail::json_value(text, "d"), "x") == R"([1, {"y": "}"}])",
         "nested text");
  expect(pl::linear(15, 20, 2.0, {.warmup = 10}) == 1.0 && pl::linear(5, 20, 2.0, {.warmup = 10}) == 1.0,
         "a line");
  expect(pl::cosine(20, 20, 2.0, {.floor = 0.5}) == 0.5 && pl::cosine(0, 20, 2.0) == 2.0, "half a cosine");
}

}  // namespace

int main() {
  orders();
  states();
  errors();
  json();
  if (failures == 0) std::puts("ok");
  return failures == 0 ? 0 : 1;
}
