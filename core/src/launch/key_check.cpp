// SPDX-License-Identifier: Apache-2.0
#include "launch/key_check.hpp"

#include "config/text_file.hpp"
#include "control/job_token.hpp"
#include "os/address.hpp"

namespace triax::launch {

Refusals check_keys(const config::LaunchKeys& keys) {
  Refusals out;
  try {
    os::address_of_interface(keys.interface);
  } catch (const Error& error) {
    out.add(make_refusal(ErrorCode::kInvalidValue, {"launch.interface"}, "launch.interface: {}", error.message())
                .with_hint("{}", error.hint()));
  }
  if (keys.token_file.empty()) return out;
  try {
    control::JobToken::from_file(keys.token_file);
  } catch (const Error& error) {
    out.add(make_refusal(config::code_of_unreadable(keys.token_file), {"launch.token_file"},
                         "launch.token_file: {}: {}", error.where(), error.message())
                .with_hint("{}", error.hint()));
  }
  return out;
}

} // namespace triax::launch
