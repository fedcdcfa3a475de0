// SPDX-License-Identifier: Apache-2.0
#include "train/check_guard.hpp"

#include <vector>

#include "base/caught_error.hpp"
#include "executor/model_error.hpp"
#include "train/plugins.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

void CheckGuard::add_caught(const std::string& key) {
  try {
    throw;
  } catch (const executor::ModelError& error) {
    refusals_.add(of_plugin(run_.model, make_refusal(ErrorCode::kIncompatible, {}, "{}", error.message())
                                            .with_hint("this is a defect of the model: report it to its author; "
                                                       "\"triax plugins test {}\" lists its defects",
                                                       run_.model.name)));
  } catch (...) {
    add_failure(key);
  }
}

void CheckGuard::add_failure(const std::string& key) {
  Error error = caught_error();
  const RankActivity* const activity = RankActivity::current();
  const config::PluginChoice* const failed = activity ? run_.find_plugin(activity->failed_plugin()) : nullptr;
  if (activity) error = activity->with_failed_call(error);
  if (failed && key.empty()) return refusals_.add(failure_of(*failed, error));
  const std::string of = key.empty() ? "" : key + ": ", where = error.where().empty() ? "" : error.where() + ": ";
  const std::vector<std::string> keys = key.empty() ? std::vector<std::string>() : std::vector{key};
  refusals_.add(
      make_refusal(ErrorCode::kUnsupported, keys, "{}{}{}", of, where, error.message()).with_hint("{}", error.hint()));
}

} // namespace triax::train
