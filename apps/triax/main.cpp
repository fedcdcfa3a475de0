// SPDX-License-Identifier: Apache-2.0
// The command line: parses it, runs a subcommand, prints errors, returns the exit status.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "command_line.hpp"
#include "common/environment_check.hpp"
#include "common/errors_out.hpp"
#include "common/missing_flags.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/unknown_variables.hpp"
#include "common/verbs.hpp"
#include "config/core_keys.hpp"
#include "plugin/did_you_mean.hpp"

namespace {

using namespace triax::app;

/// The subcommand in use, down to "plugins describe".
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> used = app.get_subcommands();
  return used.empty() ? app : innermost(*used.front());
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    out.push_back(verb->get_name());
  return out;
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> out = verbs_of(app);
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

/// "train.steps" for "--steps=5", if only one key has this name.
std::string key_of(const std::string& flag) {
  std::string name = flag.starts_with("--") ? flag.substr(2, flag.find('=') - 2) : std::string();
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> found;
  for (const triax::config::CoreTable& table : triax::config::core_tables()) {
    for (const triax::config::CoreKey& key : table.keys)
      if (name == key.option.name) found.push_back(table.name + ("." + name));
  }
  return found.size() == 1 ? found.front() : std::string();
}

/// "did you mean check?" for the first unknown word with a similar name; else empty.
std::string suggestion(const CLI::App& program) {
  const std::vector<std::string> known = words_of(innermost(program));
  const bool set = std::find(known.begin(), known.end(), "--set") != known.end();
  for (const std::string& extra : program.remaining(true)) {
    const std::vector<std::string> near = triax::plugin::nearest(extra.substr(0, extra.find('=')), known);
    if (!near.empty()) return "did you mean " + near.front() + "?";
    if (const std::string key = set ? key_of(extra) : std::string(); !key.empty())
      return "did you mean --set " + key + "=...?";
  }
  return {};
}

/// All missing required options; CLI11 reports only the first.
std::vector<std::string> missing_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options())
    if (option->get_required() && option->count() == 0) out.push_back(option->get_name());
  return out;
}

std::string command_of(const CLI::App& app) {
  return app.get_parent() ? command_of(*app.get_parent()) + " " + app.get_name() : "triax";
}

/// "--memory must be ..." for CLI11's "--memory: must be ...", if the message continues the name as a sentence.
std::string as_sentence(std::string what) {
  const std::size_t colon = what.find(": ");
  if (colon == std::string::npos) return what;
  const std::string_view message = std::string_view(what).substr(colon + 2);
  constexpr std::string_view kVerbs[] = {"must ", "cannot ", "needs ", "are "};
  if (std::ranges::any_of(kVerbs, [&](std::string_view verb) { return message.starts_with(verb); }))
    what.erase(colon, 1);
  return what;
}

/// "--set needs a value: TABLE.KEY=VALUE" for CLI11's "--set: 1 required TABLE.KEY=VALUE missing", and "--ranks was
/// given 2 times" for "--ranks: At Most 1 required but received 2".
std::string number_of_values_text(const std::string& what) {
  constexpr std::string_view kOne = ": At Most 1 required but received ";
  if (const std::size_t at = what.find(kOne); at != std::string::npos)
    return what.substr(0, at) + " was given " + what.substr(at + kOne.size()) + " times, but accepts one value";
  constexpr std::string_view kBegin = ": 1 required ", kEnd = " missing";
  const std::size_t begin = what.find(kBegin);
  if (begin == std::string::npos || !what.ends_with(kEnd)) return what;
  const std::size_t type = begin + kBegin.size();
  return what.substr(0, begin) + " needs a value: " + what.substr(type, what.size() - kEnd.size() - type);
}

/// "--cluster cannot be combined with --calibrate" for CLI11's "--cluster excludes --calibrate".
std::string conflict_text(std::string what) {
  constexpr std::string_view kExcludes = " excludes ";
  if (const std::size_t at = what.find(kExcludes); at != std::string::npos)
    what.replace(at, kExcludes.size(), " cannot be combined with ");
  return what;
}

/// Whether the error is a misspelled subcommand or flag.
bool is_of_unknown_word(const CLI::App& program, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) return true;
  return error.get_name() == "RequiredError" && !verbs_of(innermost(program)).empty() &&
         !program.remaining(true).empty();
}

triax::ErrorCode code_of(const CLI::App& program, const CLI::ParseError& error) {
  using triax::ErrorCode;
  const std::string name = error.get_name();
  if (is_of_unknown_word(program, error)) return ErrorCode::kUnknownKey;
  if (name == "RequiredError" || name == "RequiresError") return ErrorCode::kMissing;
  if (name == "ArgumentMismatch")
    return std::string_view(error.what()).ends_with(" missing") ? ErrorCode::kMissing : ErrorCode::kDuplicate;
  if (name == "ExcludesError") return ErrorCode::kConflict;
  return name == "ConversionError" ? ErrorCode::kWrongType : ErrorCode::kInvalidValue;
}

/// Names of the flags and arguments that the error is about.
std::vector<std::string> keys_of(const CLI::App& program, const CLI::ParseError& error) {
  if (is_of_unknown_word(program, error)) {
    std::vector<std::string> words = program.remaining(true);
    if (error.get_name() == "RequiredError") words.resize(1); // a subcommand, whose arguments follow
    return words;
  }
  if (error.get_name() == "RequiredError") return missing_of(innermost(program));
  const std::string_view what = error.what();
  const std::string name(what.substr(0, what.find_first_of(": ")));
  const CLI::Option* const option = innermost(program).get_option_no_throw(name);
  return option ? std::vector{option->get_name()} : std::vector<std::string>();
}

int refuse(const CLI::App& program, const CLI::ParseError& error, bool as_json) {
  std::string what = number_of_values_text(as_sentence(error.what()));
  if (error.get_name() == "ExcludesError") what = conflict_text(std::move(what));
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) { // CLI11 lists them in reverse order
    const std::vector<std::string> extras = program.remaining(true);
    what = extras.size() == 1 ? "unexpected argument:" : "unexpected arguments:";
    for (const std::string& extra : extras) what += " " + extra;
  }
  // If the subcommand is missing or misspelled, CLI11 only says that one is required.
  const std::vector<std::string> verbs = verbs_of(innermost(program));
  if (error.get_name() == "RequiredError" && !verbs.empty()) {
    const std::vector<std::string> extras = program.remaining(true);
    what = extras.empty() ? "missing subcommand; use one of" : "unknown subcommand " + extras.front() + "; use one of";
    const char* separator = ": ";
    for (const std::string& verb : verbs) {
      what += separator + verb;
      separator = ", ";
    }
  }
  if (error.get_name() == "RequiredError" && verbs.empty()) {
    const std::vector<std::string> missing = missing_of(innermost(program));
    if (!missing.empty()) what = required_text(missing);
  }
  const std::string meant = suggestion(program);
  const std::string more = (meant.empty() ? "" : meant + " ") + "see: " + command_of(innermost(program)) + " --help";
  const triax::Refusal refusal{code_of(program, error), keys_of(program, error), what, more};
  const triax::config::Diagnostic diagnostic{"triax: " + what + "\n  " + more, refusal, {}};
  return triax::app::refuse(std::vector{diagnostic}, as_json);
}

/// Fails if stdout could not be written. If its reader has closed the pipe (`| head`), prints no error.
int finish(int status) {
  std::cout.flush();
  result_out().flush();
  if (result_out()) return status;
  // std::cerr flushes std::cout, so the failed write may be an earlier one, and errno is not reliable.
  pollfd reader{result_descriptor(), 0, 0};
  if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) return 128 + SIGPIPE;
  std::cerr << "standard output could not be written\n";
  return kFailed;
}

/// Does not run static destructors and exit handlers: plugins are never unloaded, and if one of theirs crashed, the
/// exit status would contradict the result that was printed.
[[noreturn]] void end(int status) {
  std::fflush(nullptr);
#ifdef __SANITIZE_ADDRESS__
  __lsan_do_leak_check(); // otherwise an exit handler does it
#endif
#ifdef __SANITIZE_THREAD__
  std::exit(status); // an exit handler reports what was found
#else
  std::_Exit(status);
#endif
}

/// Also works if the command line is invalid.
bool wants_json(int argc, char** argv) {
  return std::find(argv + 1, argv + argc, std::string_view("--json")) != argv + argc;
}

/// If descriptor 0, 1 or 2 is closed, the next opened file would get its number, and output would go into that file.
/// Replaces closed ones by /dev/null; stdout by one that cannot be written, so that a lost result is an error.
void keep_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    while (fcntl(stream, F_GETFD) == -1 && errno == EBADF)
      if (open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

} // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  // A closed peer or reader makes the write fail, and must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL); // if the parent ignores SIGCHLD, exit statuses of ranks would be lost
  std::signal(SIGXFSZ, SIG_IGN); // a file at its size limit (ulimit -f) makes the write fail, too
  const bool as_json = wants_json(argc, argv);
  if (as_json) reserve_stdout();
  if (const std::optional<triax::Refusal> error = environment_error())
    end(finish(triax::app::refuse(triax::Refusals(*error), as_json)));
  for (const std::string& note : unknown_variables()) print_problem(note);
  int status = kDone;
  const std::unique_ptr<CLI::App> program = make_command_line(status);
  try {
    program->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) end(finish(refuse(*program, error, as_json)));
    program->exit(error); // --help, --version
  } catch (const std::exception& error) {
    print_problem(error.what(), as_json);
    status = kFailed;
  }
  end(finish(status));
}
