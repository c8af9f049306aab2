$[ there-is-no-such-file.mm $]
