#include "planner/programs/program_cache.h"

#include <algorithm>
#include <utility>

namespace plimsoll::planner {

const ProgramBeginning* ProgramCache::find_beginning(const BeginningKey& key) const {
  const std::vector<ProgramBeginning>& list = key.order ? ordered_ : beginnings_;
  const auto found = std::ranges::find(list, key, &ProgramBeginning::key);
  return found == list.end() ? nullptr : &*found;
}

void ProgramCache::add_beginning(ProgramBeginning beginning) {
  std::vector<ProgramBeginning>& list = beginning.key.order ? ordered_ : beginnings_;
  if (list.size() == kMostBeginnings) list.erase(list.begin());
  list.push_back(std::move(beginning));
}

const BoundProgram* ProgramCache::find_update(const UpdateKey& key) const {
  return update_ && update_->key == key ? &update_->program : nullptr;
}

void ProgramCache::set_update(UpdateKey key, BoundProgram update) {
  update_ = {std::move(key), std::move(update)};
}

}  // namespace plimsoll::planner
