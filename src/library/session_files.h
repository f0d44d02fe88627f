// Saves a session to a folder, atomically, and loads it.
//
//   model.safetensors       the parameters by their names
//   optimizer.safetensors   masters, the optimizer's states, the loss scale
//   session.json            steps, seed, the caller's own state, checksums of the others
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "library/own_session.h"

namespace plimsoll::library {

/// `host_state`: JSON of the caller's own; empty: null. Errors: kIo; kInvalidArgument where it is no JSON, or
/// `folder` holds something that no session has saved.
Status save_session(OwnSession& session, const std::string& folder, std::string_view host_state);
/// Continues from the folder with bit-identical results; returns the caller's state as JSON. Errors: kIo if
/// there is none, kBadData if it is damaged or of another model; the session is then unchanged.
Result<std::string> load_session(OwnSession& session, const std::string& folder);

}  // namespace plimsoll::library
