#include "planner/programs/program_cache.h"

#include <algorithm>
#include <utility>

namespace plimsoll::planner {

const ProgramBeginning* ProgramCache::find_beginning(const BeginningKey& key) const {
  const auto found = std::ranges::find(beginnings_, key, &ProgramBeginning::key);
  return found == beginnings_.end() ? nullptr : &*found;
}

void ProgramCache::add_beginning(ProgramBeginning beginning) {
  if (beginnings_.size() == kMostBeginnings) beginnings_.erase(beginnings_.begin());
  beginnings_.push_back(std::move(beginning));
}

const BoundProgram* ProgramCache::find_update(const UpdateKey& key) const {
  return update_ && update_->key == key ? &update_->program : nullptr;
}

void ProgramCache::set_update(UpdateKey key, BoundProgram update) {
  update_ = {std::move(key), std::move(update)};
}

}  // namespace plimsoll::planner
