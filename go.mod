module github.com/godwit-ps/godwit

go 1.25.0
