#!/bin/sh -e
# SPDX-License-Identifier: Apache-2.0

# Make the archives in this directory, with the programs that common hosts have. They were made
# by Info-ZIP zip 3.0, git 2.39, OpenJDK 17, 7-Zip 26.02, libarchive 3.6, Go 1.19 and Python 3.11.
# Usage: make.sh DIRECTORY

target=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TZ=UTC LC_ALL=C.UTF-8

mkdir -p "$work/package/Classes" "$work/package/Resources/empty"
cd "$work/package"
printf 'FullName: org.app\nType: Library\nClasses: {org.App: App.yaml}\n' > manifest.yaml
printf 'Name: org.App\n# A comment that can be compressed, a comment that can be compressed.\n' \
    > Classes/App.yaml
printf '#!/bin/sh\nexit\n' > Resources/run.sh
chmod +x Resources/run.sh
: > Resources/nothing
printf 'x\n' > Resources/ä.txt
find . -exec touch -d 2026-01-01 {} +

cat > "$work/pack.py" << 'END'
import pathlib
import shutil
import sys
import zipfile


class Pipe:
    """A file that cannot seek."""

    def __init__(self, stream):
        self.write, self.flush = stream.write, stream.flush


target = sys.argv[1]
files = sorted(pathlib.Path().rglob("*"))
shutil.make_archive(f"{target}/make-archive", "zip")
for name, method in (("python-pipe", zipfile.ZIP_DEFLATED), ("python-stored", zipfile.ZIP_STORED)):
    with (
        open(f"{target}/{name}.zip", "wb") as stream,
        zipfile.ZipFile(Pipe(stream), "w", method) as archive,
    ):
        for file in files:
            archive.write(file)
with zipfile.ZipFile(f"{target}/python-zip64.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for file in files:
        if file.is_file():
            with archive.open(str(file), "w", force_zip64=True) as stream:
                stream.write(file.read_bytes())
END

cat > "$work/pack.go" << 'END'
package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Pack what is not hidden; compressed if method is nil, else by the header's default.
func pack(name string, compressed bool) {
	target, _ := os.Create(name)
	archive := zip.NewWriter(target)
	filepath.Walk(".", func(path string, info os.FileInfo, _ error) error {
		if path == "." || strings.HasPrefix(path, ".git") {
			return nil
		}
		header, _ := zip.FileInfoHeader(info)
		header.Name = path
		if info.IsDir() {
			header.Name += "/"
		} else if compressed {
			header.Method = zip.Deflate
		}
		writer, _ := archive.CreateHeader(header)
		if !info.IsDir() {
			file, _ := os.Open(path)
			io.Copy(writer, file)
			file.Close()
		}
		return nil
	})
	archive.Close()
	target.Close()
}

func main() {
	pack(os.Args[1], true)
	pack(os.Args[2], false)
}
END

# These do not mark names as UTF-8.
zip -qr "$target/zip.zip" . -x 'Resources/*.txt'
zip -qr - . -x 'Resources/*.txt' | cat > "$target/zip-pipe.zip"
zip -qr -fz "$target/zip-zip64.zip" . -x 'Resources/*.txt'
zip -q0r - . -x 'Resources/*.txt' | cat > "$target/zip-pipe-stored.zip"
zip -qr "$target/zip-unmarked.zip" .

7z a -bso0 "$target/7zip.zip" .
7z a -bso0 -mx0 "$target/7zip-stored.zip" .
jar cf "$target/jar.zip" .
jar cM . | cat > "$target/jar-pipe.zip"
jar c0Mf "$target/jar-stored.zip" .
bsdtar -a -cf "$target/bsdtar.zip" -- *
bsdtar --format zip -cf - -- * | cat > "$target/bsdtar-pipe.zip"
python3 "$work/pack.py" "$target"
go run "$work/pack.go" "$target/go.zip" "$target/go-stored.zip"

export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
git init -q .
git add -A
git -c user.name=a -c user.email=a@example.org commit -qm a
git archive --format zip -o "$target/git.zip" HEAD
git -c core.bigFileThreshold=1 archive --format zip -o "$target/git-streamed.zip" HEAD
git -c core.bigFileThreshold=1 archive --format zip -0 -o "$target/git-stored.zip" HEAD
