// SPDX-License-Identifier: Apache-2.0
#include "control/job_local_store.hpp"

namespace triax::control {

void LocalStore::abort(std::string_view why) noexcept {
  end_waits(why);
}

} // namespace triax::control
