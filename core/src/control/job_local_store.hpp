// SPDX-License-Identifier: Apache-2.0
// The store for ranks of a job that are threads of one process: the job's abort ends its waits.
//
// Threads, ownership, blocking, errors: as triax::LocalStore.
#pragma once

#include "control/abort_flag.hpp"
#include "triax/local_store.hpp"

namespace triax::control {

class LocalStore final : public triax::LocalStore, public JobAbort::Listener {
 public:
  void abort(std::string_view why) noexcept override;
};

} // namespace triax::control
