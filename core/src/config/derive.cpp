#include "config/derive.hpp"

#include "data/dataset.hpp"
#include "data/tokenizer.hpp"

namespace triax::config {

namespace {

using Path = std::filesystem::path;

void derive_files(Values& values, const Path& file) {
  // In the working folder, not beside the TOML: whoever runs an installed example has no right to write there.
  if (!values.has("run.dir")) values.set("run.dir", std::filesystem::absolute(Path("runs") / file.stem()), "default");
  if (!values.has("log.metrics")) values.set("log.metrics", values.get<Path>("run.dir") / "metrics.jsonl", "default");
}

void derive_data_size(Values& values, std::optional<int> world, Refusals& refusals) {
  const auto* pipeline = values.find<std::int64_t>("parallel.pipeline");
  const auto* tensor = values.find<std::int64_t>("parallel.tensor");
  if (!pipeline || !tensor) return;
  const auto* data = values.find<std::int64_t>("parallel.data");
  const std::int64_t one_copy = *pipeline * *tensor;
  if (!data && (!world || *world % one_copy == 0)) {
    values.set("parallel.data", world ? *world / one_copy : std::int64_t{1}, "derived");
  } else if (world && (!data || *world != one_copy * *data)) {
    const std::string copies = data ? text(" x parallel.data = {}", *data) : std::string();
    const auto answer =
        Support::no("parallel.pipeline = {} x parallel.tensor = {}{} does not fit the launcher's {} ranks", *pipeline,
                    *tensor, copies, *world);
    const Annotated refused = annotate(answer, values.list());
    refusals.add_text(values.at(refused.lead), refused.text);
  }
}

void derive_vocab(Values& values, Refusals& refusals) {
  const auto* path = values.find<Path>("data.path");
  std::error_code unreadable;
  const bool there = path && std::filesystem::exists(data::beside(*path, ".bin"), unreadable);
  if (values.has("model.vocab") || !there) return; // files that are not there are refused with the other checks
  try {
    values.set("model.vocab", data::read_tokenizer_info(*path).vocab, "derived");
  } catch (const Error& error) {
    const Position at = values.at("data.path");
    refusals.add_text(at,
                      text("{}: {} (data.path, {})\n  {}", error.where(), error.message(), to_text(at), error.hint()));
  }
}

} // namespace

void derive(Values& values, const Path& file, std::optional<int> world, Refusals& refusals) {
  derive_files(values, file);
  derive_data_size(values, world, refusals);
  derive_vocab(values, refusals);
}

} // namespace triax::config
