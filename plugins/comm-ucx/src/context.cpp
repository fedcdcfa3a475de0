// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "triax/text.hpp"

namespace triax::comm_ucx {

namespace {

using triax::Error;
using triax::text;

std::mutex& library() {
  static std::mutex mutex;
  return mutex;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : separator).append(word);
  return out;
}

/// A variable or key whose value UCX cannot parse.
struct Invalid {
  std::string text, name, expected;
};

/// UCX 1.13: "Invalid value for RNDV_THRESH: 'garbage'. Expected: memory units". The name is without UCX_, and without
/// the name of a transport (TX_SEG_SIZE for UCX_TCP_TX_SEG_SIZE).
std::optional<Invalid> find_invalid(const std::string& message, const Settings& settings) {
  constexpr std::string_view kBegin = "Invalid value for ", kBetween = ": '", kEnd = "'. Expected: ";
  if (!message.starts_with(kBegin)) return std::nullopt;
  const std::size_t between = message.find(kBetween), end = message.find(kEnd);
  if (between == std::string::npos || end == std::string::npos || end < between) return std::nullopt;
  const std::string name = message.substr(kBegin.size(), between - kBegin.size());
  const std::string value = message.substr(between + kBetween.size(), end - between - kBetween.size());
  const std::string expected = message.substr(end + kEnd.size());
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos || !variable.starts_with("UCX_") ||
        !variable.substr(0, equals).ends_with("_" + name) || variable.substr(equals + 1) != value)
      continue;
    const std::string found(variable.substr(0, equals));
    return Invalid{text("{} = \"{}\" in the environment", found, value), found, expected};
  }
  for (const auto& [changed, to] : settings.changes)
    if (changed == name && to == value)
      return Invalid{text("UCX_{} = \"{}\"", name, value), "the key for it", expected};
  return std::nullopt;
}

/// Names the restrictions, and what there is to choose from.
[[noreturn]] void refuse_restrictions(const Settings& settings, const std::string& reason) {
  std::vector<std::string> texts, names;
  for (const Restriction& restriction : settings.restrictions) {
    texts.push_back(restriction.text);
    names.push_back(restriction.name);
  }
  throw Error(text("{}: {}", joined(texts, " and "), reason), "comm-ucx",
              text("this machine has the transports {}; correct {}, or leave the choice to UCX",
                   joined(available_transports(), ", "), joined(names, " and ")));
}

/// UCX leaves out what it does not find, and continues with the rest.
void check_devices(const std::string& asked) {
  if (asked.empty()) return;
  const std::vector<std::string> known = network_devices(), unknown = unknown_devices(asked, known);
  if (unknown.empty()) return;
  throw Error(text("this machine has no network device \"{}\" that UCX can use", unknown.front()), "comm-ucx",
              text("values of devices (or UCX_NET_DEVICES): {}",
                   known.empty() ? "none here: leave it out" : joined(known, ", ")));
}

void check_transports(const Settings& settings, const UcxLogCapture& log) {
  const auto left_out = [](const std::string& message) {
    return message.starts_with("transport") && message.find("not available") != std::string::npos;
  };
  const auto found = std::ranges::find_if(log.messages(), left_out);
  if (found != log.messages().end() && !settings.restrictions.empty()) refuse_restrictions(settings, *found);
}

struct Config {
  ucp_config_t* config = nullptr;
  Config() = default;
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  ~Config() {
    if (config) ucp_config_release(config);
  }
};

struct Context {
  ucp_context_h context = nullptr;
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (context) ucp_cleanup(context);
  }
};

/// UCX's last message may name the consequence only.
bool is_short_of_shared_memory(ucs_status_t status, const UcxLogCapture& log) {
  return status == UCS_ERR_NO_MEMORY || std::ranges::any_of(log.messages(), [](const std::string& message) {
           return message.find("/dev/shm") != std::string::npos || message.find("shared memory") != std::string::npos ||
                  message.find("receive descriptor") != std::string::npos;
         });
}

/// "; /dev/shm has 12 of 64 MiB free", or empty.
std::string free_text(const char* folder) {
  struct statvfs status {};
  if (::statvfs(folder, &status) != 0) return {};
  const auto mebibytes = [&](auto blocks) { return blocks * status.f_frsize >> 20; };
  return text("; {} has {} of {} MiB free", folder, mebibytes(status.f_bavail), mebibytes(status.f_blocks));
}

[[noreturn]] void refuse_shared_memory(const std::string& reason) {
  constexpr const char* kVariable = "UCX_POSIX_DIR";
  const char* const given = std::getenv(kVariable);
  if (!given)
    throw Error(reason + free_text("/dev/shm"), "comm-ucx",
                "enlarge /dev/shm (a container: docker run --shm-size=1g), start fewer ranks on this machine, or use "
                "transports = \"tcp\", which needs none");
  throw Error(
      text("{}; {} = \"{}\" in the environment{}", reason, kVariable, given, free_text(given)), "comm-ucx",
      text("unset {}, name a folder in memory that can be written, or use transports = \"tcp\", which needs none",
           kVariable));
}

/// The variables in UCX 1.13's "unused env variables: UCX_A,UCX_B (maybe: UCX_C?) (set UCX_WARN_UNUSED_ENV_VARS=n to
/// suppress this warning)"; empty: another message.
std::string unused_in(std::string_view message) {
  constexpr std::string_view kBegin = "unused env variable", kEnd = " (set UCX_WARN_UNUSED_ENV_VARS";
  const std::size_t colon = message.find(": ");
  if (!message.starts_with(kBegin) || colon == std::string_view::npos) return {};
  return std::string(message.substr(colon + 2, message.find(kEnd) - colon - 2));
}

/// UCX reports them at the first context of the process, which may be that of a rank that does not log. Under
/// library().
std::string& unused() {
  static std::string variables;
  return variables;
}

} // namespace

void check_ucx(ucs_status_t status, std::string_view what, const Settings& settings, const UcxLogCapture& log) {
  if (status == UCS_OK) return;
  const std::string reason = log.messages().empty() ? ucs_status_string(status) : log.messages().back();
  for (const std::string& message : log.messages())
    if (const std::optional<Invalid> invalid = find_invalid(message, settings))
      throw Error(text("{} is invalid; expected: {}", invalid->text, invalid->expected), "comm-ucx",
                  text("correct {}, or remove it", invalid->name));
  if (is_short_of_shared_memory(status, log)) refuse_shared_memory(text("UCX: {}: {}", what, reason));
  const bool nothing_usable = status == UCS_ERR_NO_DEVICE || status == UCS_ERR_NO_ELEM || status == UCS_ERR_UNREACHABLE;
  if (nothing_usable && !settings.restrictions.empty())
    refuse_restrictions(settings, text("UCX: {}: {}", what, reason));
  throw Error(text("UCX: {}: {}", what, reason), "comm-ucx", "set UCX_LOG_LEVEL=info for details");
}

ucp_context_h make_context(const Settings& settings) {
  const std::lock_guard lock(library());
  const UcxLogCapture log(settings.quiet);
  Config config;
  check_ucx(ucp_config_read(nullptr, nullptr, &config.config), "cannot read its configuration", settings, log);
  for (const auto& [name, value] : settings.changes)
    check_ucx(ucp_config_modify(config.config, name.c_str(), value.c_str()), text("cannot set {} = {}", name, value),
              settings, log);
  check_devices(settings.devices);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | (settings.wait == Wait::event ? UCP_FEATURE_WAKEUP : 0);
  Context made;
  check_ucx(ucp_init(&params, config.config, &made.context), "cannot create a context", settings, log);
  check_transports(settings, log);
  return std::exchange(made.context, nullptr);
}

void keep_unused_variables(const UcxLogCapture& log) {
  const std::lock_guard lock(library());
  for (const std::string& message : log.messages())
    if (std::string found = unused_in(message); !found.empty()) unused() = std::move(found);
}

std::string take_unused_variables() {
  const std::lock_guard lock(library());
  return std::exchange(unused(), {});
}

} // namespace triax::comm_ucx
