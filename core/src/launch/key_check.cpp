// SPDX-License-Identifier: Apache-2.0
#include "launch/key_check.hpp"

#include "control/job_token.hpp"
#include "os/address.hpp"

namespace triax::launch {

std::vector<Support> check_keys(const config::LaunchKeys& keys) {
  std::vector<Support> out;
  try {
    os::address_of_interface(keys.interface);
  } catch (const Error& error) {
    out.push_back(Support::no("launch.interface: {}", error.message()).hint("{}", error.hint()));
  }
  if (keys.token_file.empty()) return out;
  try {
    control::JobToken::from_file(keys.token_file);
  } catch (const Error& error) {
    out.push_back(Support::no("launch.token_file: {}: {}", error.where(), error.message()).hint("{}", error.hint()));
  }
  return out;
}

} // namespace triax::launch
