# The commands for Homebrew, built from the clone that is tapped:
#   brew tap sessions/sessionfs "$PWD" && brew install --HEAD sessions/sessionfs/sessionfs
class Sessionfs < Formula
  desc "Coding agents' sessions as files and directories"
  license "MIT"
  head "file://#{File.expand_path("..", __dir__)}", using: :git, branch: "main"

  depends_on "go" => :build

  def install
    system "go", "build", *std_go_args(ldflags: "-s -w"), "./cmd/sessionfs"
    generate_completions_from_executable(bin/"sessionfs", "completion")
    (buildpath/"sessionfs.1").write Utils.safe_popen_read("scripts/man")
    man1.install "sessionfs.1"
  end

  test do
    assert_match "Tide sheets", shell_output("#{bin}/sessionfs ls -s demo recent")
  end
end
