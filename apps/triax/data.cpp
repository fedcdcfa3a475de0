// triax data prepare: text files to token files.
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

#include "data/prepare.hpp"
#include "data/tokenizer.hpp"
#include "held_signals.hpp"
#include "problems.hpp"
#include "report/json.hpp"
#include "report/terminal.hpp"
#include "report/units.hpp"
#include "verbs.hpp"

namespace triax::app {

namespace {

constexpr std::uint64_t kBigInput = 64'000'000; // below, it is done before a bar could be read

/// Draws how far reading is, on a terminal; takes the line away at the end.
class ReadingBar {
 public:
  void update(std::uint64_t done, std::uint64_t total) {
    if (!terminal_.terminal || total < kBigInput) return;
    const auto now = std::chrono::steady_clock::now();
    if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    drawn_ = true;
    const std::string line = text("prepare: {} of {} ({} %)", report::bytes_text(done), report::bytes_text(total),
                                  100 * std::min(done, total) / total);
    const auto room = static_cast<std::size_t>(std::max(1, terminal_.columns - 1));
    std::cerr << report::kClearLine << line.substr(0, room) << std::flush;
  }
  ~ReadingBar() {
    if (drawn_) std::cerr << report::kClearLine << std::flush;
  }

 private:
  report::Terminal terminal_ = report::stderr_terminal();
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

void print_part(const data::PreparedPart& part) {
  const auto files = text("{}.bin .idx .json", part.prefix);
  std::cout << text("{}: {} document{}, {} tokens, {}\n", files, part.documents, part.documents == 1 ? "" : "s",
                    part.tokens, report::bytes_text(part.bytes));
}

report::JsonObject json_of(const data::PreparedPart& part) {
  report::JsonObject out;
  out.set("prefix", part.prefix.string()).set("documents", part.documents).set("tokens", part.tokens);
  std::vector<std::string> files;
  for (const char* ending : {".bin", ".idx", ".json"}) files.push_back(data::beside(part.prefix, ending).string());
  out.set("bytes", part.bytes).set("files", files);
  return out;
}

void print(const data::Prepared& made, const std::string& tokenizer, bool as_json) {
  if (!as_json) {
    print_part(made.train);
    if (made.validation) print_part(*made.validation);
    return;
  }
  report::JsonObject out;
  out.set("tokenizer", tokenizer).set("train", json_of(made.train));
  if (made.validation) out.set("validation", json_of(*made.validation));
  std::cout << out.line() << '\n';
}

void print_refused(const std::vector<Support>& refused, bool as_json) {
  std::vector<std::string> texts;
  texts.reserve(refused.size());
  for (const Support& refusal : refused) texts.emplace_back(Error(refusal.reason(), {}, refusal.hint()).what());
  for (const std::string& refusal : texts) print_problem(refusal);
  if (as_json) std::cout << report::JsonObject().set("refusals", texts).line() << '\n';
}

/// Leaves prepare(), which takes back what it has written.
struct Stopped : std::exception {
  explicit Stopped(int number) : signal(number) {}
  int signal;
};

int run_prepare(const data::PrepareRequest& request, bool as_json) {
  const std::vector<Support> refused = data::refusals(request);
  if (!refused.empty()) {
    print_refused(refused, as_json);
    return kRefused;
  }
  HeldSignals signals;
  data::Prepared made;
  try {
    ReadingBar bar;
    made = data::prepare(request, [&](std::uint64_t done, std::uint64_t total) {
      if (const int signal = signals.caught()) throw Stopped(signal);
      bar.update(done, total);
    });
  } catch (const Stopped& stopped) {
    print_problem(text("stopped by {}: nothing was written", stopped.signal == SIGINT ? "SIGINT" : "SIGTERM"), as_json);
    return 128 + stopped.signal;
  }
  print(made, request.tokenizer, as_json);
  return kDone;
}

struct PrepareFlags {
  data::PrepareRequest request;
  std::string separator;
  bool json = false;
};

} // namespace

void add_data(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("data", "prepares text for training");
  verb->require_subcommand(1);
  CLI::App* prepare = verb->add_subcommand("prepare", "text files to token files (Megatron's indexed dataset)");
  auto flags = std::make_shared<PrepareFlags>();
  data::PrepareRequest& request = flags->request;
  prepare->add_option("--input", request.inputs, "text files, in this order; each is one document")
      ->type_name("FILE")
      ->required();
  prepare->add_option("--output", request.output, "prefix of the files to write; its folder is made if missing")
      ->type_name("PREFIX")
      ->required();
  prepare->add_option("--tokenizer", request.tokenizer, "byte: each byte is a token, one more ends a document")
      ->type_name("NAME")
      ->required();
  CLI::Option* separator = prepare->add_option("--separator", flags->separator,
                                               "a line of this text alone ends a document, and belongs to none");
  separator->type_name("LINE");
  prepare
      ->add_option("--validation-fraction", request.validation_fraction,
                   "share of the documents, spread evenly, that goes to PREFIX-validation")
      ->type_name("F");
  prepare->add_flag("--force", request.force, "replace files that are there");
  prepare->add_flag("--json", flags->json, "print the result as one JSON object");
  prepare->callback([flags, separator, &status] {
    if (separator->count() > 0) flags->request.separator = flags->separator;
    status = run_prepare(flags->request, flags->json);
  });
}

} // namespace triax::app
