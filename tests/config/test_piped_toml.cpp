// SPDX-License-Identifier: Apache-2.0
// Run TOML from pipes, FIFOs and devices, and limits on how much is read.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "config/text_file.hpp"
#include "config/workspace.hpp"
#include "support/error_of.hpp"

namespace triax::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using triax::test::error_of;
using namespace std::chrono_literals;

/// Read end of a pipe, with a path as from a shell's <(...). The text must fit in the pipe's buffer.
class Pipe {
 public:
  explicit Pipe(const std::string& toml) {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    if (::write(ends_[1], toml.data(), toml.size()) != static_cast<ssize_t>(toml.size()))
      throw std::runtime_error("write");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_writer();
    ::close(ends_[0]);
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string path() const { return text("/dev/fd/{}", ends_[0]); }

 private:
  int ends_[2] = {-1, -1};
};

TEST(PipedToml, IsReadLikeAFileWithPathsFromTheWorkingFolder) {
  Workspace space;
  space.load();
  space.write("more.toml", "[train]\nseed = 7\n");
  std::string toml = "include = [\"more.toml\"]\n" + test::read_file(space.path("run.toml"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(space.path(""));
  Pipe pipe(toml);
  pipe.close_writer();
  const LoadResult loaded = config::load(pipe.path(), {});
  std::filesystem::current_path(before);
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->train.seed, 7u);
  EXPECT_EQ(loaded.run->data.training.paths, std::vector{space.path("text")});
  EXPECT_EQ(loaded.run->folder, space.path("runs/pipe"));
  EXPECT_EQ(shown(loaded, "train.seed"), "7 # more.toml:2:8");
  EXPECT_THAT(shown(loaded, "batch.global"), HasSubstr("8 # " + pipe.path() + ":3:"));
}

/// As in `triax train /dev/stdin <run.toml`: another process cannot open the file by this name.
TEST(PipedToml, ARedirectedFileIsTakenAsAPipe) {
  Workspace space;
  space.load();
  const int file = ::open(space.path("run.toml").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const std::string path = text("/dev/fd/{}", file);
  EXPECT_TRUE(is_piped(path));
  EXPECT_TRUE(is_piped("/dev/stdin"));
  EXPECT_FALSE(is_piped(space.path("run.toml")));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(space.path(""));
  const LoadResult loaded = config::load(path, {});
  std::filesystem::current_path(before);
  ::close(file);
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->data.training.paths, std::vector{space.path("text")});
  EXPECT_EQ(loaded.run->folder, space.path("runs/pipe"));
}

TEST(PipedToml, ErrorsNameThePipeAndTheLine) {
  Pipe pipe("[train]\nsteps = \n");
  pipe.close_writer();
  EXPECT_THAT(texts(config::load(pipe.path(), {})), ElementsAre(HasSubstr(pipe.path() + ":2:8: not valid TOML")));
}

TEST(PipedToml, AFifoIsReadWhenItsWriterComes) {
  const Workspace space;
  const std::filesystem::path fifo = space.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&fifo] { test::write_file(fifo, "steps = 1\n"); }); // opening blocks until a reader exists
  EXPECT_EQ(read_text(fifo, "fifo"), "steps = 1\n");
  writer.join();
}

TEST(PipedToml, ASilentPipeIsNotWaitedForIndefinitely) {
  const Workspace space;
  const std::filesystem::path fifo = space.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { read_text(fifo, "fifo", 20ms); }),
              HasSubstr("fifo: timed out after 0.02 s without data from this pipe\n  check that a program writes"));
  const Pipe open("steps ="); // its writer neither writes nor closes
  EXPECT_THAT(error_of([&] { read_text(open.path(), "open", 20ms); }), HasSubstr("open: timed out after 0.02 s"));
}

TEST(PipedToml, AnEndlessSourceIsRefused) {
  EXPECT_THAT(texts(config::load("/dev/zero", {})),
              ElementsAre("/dev/zero: is larger than 8 MiB, the limit of a TOML text\n"
                          "  check that this is the TOML of a run"));
  Workspace space;
  space.write("large.toml", std::string((8 << 20) + 1, '#'));
  EXPECT_THAT(texts(space.load_file("large.toml")), ElementsAre(HasSubstr("large.toml: is larger than 8 MiB")));
}

} // namespace
} // namespace triax::config
