// SPDX-License-Identifier: Apache-2.0
// Opens UCX as the settings ask, and says what is wrong where UCX refuses: which variable or key, its value, and what
// this machine has.
//
// Threads: any; UCX is entered under a lock, as it reads the environment and loads modules on the first use. Ownership:
// the caller destroys the context with ucp_cleanup(). Blocking: looks at the hardware; no network. Errors: Error.
#pragma once

#include <ucp/api/ucp.h>

#include <string_view>

#include "ucx_log.hpp"
#include "ucx_settings.hpp"

namespace triax::comm_ucx {

ucp_context_h make_context(const Settings& settings);

/// Keeps the environment variables UCX_... that UCX does not know. `log`: captured while a worker was created.
void keep_unused_variables(const UcxLogCapture& log);
/// "UCX_TLSS (maybe: UCX_TLS?)", with names that UCX suggests; empty if there are none, and at later calls.
std::string take_unused_variables();

/// Throws Error unless `status` is UCS_OK. `log`: captured during the call that returned it.
void check_ucx(ucs_status_t status, std::string_view what, const Settings& settings, const UcxLogCapture& log);

} // namespace triax::comm_ucx
